"""Jobs through a real scheduler with its threads, its loop and its child processes, on both databases."""

from __future__ import annotations

import jobs
from jobs import Status
from tests.support import tasks
from tests.support.engine import running


def test_one_job_of_each_execution_completes_with_its_result(live_database: str) -> None:
    rows = [tasks.add.enqueue(1, b=2), tasks.aadd.enqueue(3, 4), tasks.padd.enqueue(5, 6)]
    with running(processes=1) as scheduler:
        assert scheduler.join(30)
    assert [(jobs.get(row).status, jobs.get(row).result) for row in rows] == [
        (Status.COMPLETED, 3),
        (Status.COMPLETED, 7),
        (Status.COMPLETED, 11),
    ]


def test_a_job_submitted_to_an_idle_scheduler_starts_without_waiting_for_the_poll(live_database: str) -> None:
    with running(poll=30.0) as scheduler:
        assert scheduler.join(5)
        row = tasks.add.enqueue(1)
        assert scheduler.join(10)
    assert jobs.get(row).status == Status.COMPLETED
