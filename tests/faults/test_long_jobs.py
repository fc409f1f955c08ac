"""How long a job runs, or how far ahead it is planned, is no evidence of a death."""

from __future__ import annotations

import signal
from pathlib import Path

import jobs
from jobs import Status
from tests.support import tasks
from tests.support.models import effects
from tests.support.schedulers import FAST, scheduler
from tests.support.story import story_of
from tests.support.waiting import pass_time, wait_until

ONE_OF_EACH = (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)


def test_a_job_of_four_leases_is_started_once_beside_other_schedulers(live_database: str, tmp_path: Path) -> None:
    until = tmp_path / "leave"
    with (
        scheduler(live_database, "--name=one", jobs=FAST),
        scheduler(live_database, "--name=two", jobs=FAST),
        scheduler(live_database, "--name=three", jobs=FAST),
    ):
        rows = [task.enqueue("long", str(until)) for task in ONE_OF_EACH]
        wait_until(lambda: effects(live_database, "long") == len(rows), what="all have begun")
        pass_time(4 * FAST["LEASE"])
        until.touch()
        wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows))
    assert effects(live_database, "long") == len(rows)
    assert [(one.outcomes, one.result) for one in map(story_of, rows)] == [(["completed"], "let go")] * 3


def test_a_job_planned_three_leases_ahead_runs_once_whatever_restarts_in_between(live_database: str) -> None:
    row = tasks.leave_mark.using(delay=3 * FAST["LEASE"]).enqueue("planned")
    for _ in range(3):
        with scheduler(live_database, jobs=FAST) as worker:
            pass_time(FAST["LEASE"] / 2)
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0, worker.output
    with scheduler(live_database, jobs=FAST):
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED, what="its time has come")
        pass_time(2 * FAST["POLL"])
    assert effects(live_database, "planned") == 1
    assert story_of(row).outcomes == ["completed"]
