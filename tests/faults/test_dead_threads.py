"""A thread of the scheduler that nobody stopped ends: the process goes on, or hands back and exits with 3."""

from __future__ import annotations

import pytest

import jobs
from jobs import Status
from tests.support import faulty, tasks
from tests.support.models import Effect
from tests.support.processes import ChildProcess
from tests.support.schedulers import FAST, scheduler
from tests.support.waiting import wait_until

pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
LOOPS = ["jobs-lease-keeper", "jobs-dispatcher", "jobs-housekeeper", "jobs-planner"]


def kill(worker: ChildProcess, thread: str) -> None:
    while worker.running:  # a slot cannot kill itself: then the next one does
        killer = faulty.kill_thread_for_good.enqueue(thread)
        tasks.add.using(timeout=30).enqueue(1)  # wakes the timekeeper and another slot, which find out then
        wait_until(lambda: not worker.running or jobs.get(killer).status == Status.FAILED, timeout=40)  # noqa: B023


@pytest.mark.parametrize("thread", [*LOOPS, "jobs-timekeeper", "jobs-thread-4"])
def test_a_process_whose_agent_died_exits_with_3_and_hands_its_jobs_back(live_database: str, thread: str) -> None:
    with scheduler(live_database, "--grace=0.5", jobs=FAST) as worker:
        hanging = tasks.hang_in_thread.using(retry=1).enqueue("hanging")
        wait_until(lambda: Effect.objects.using(live_database).filter(label="hanging").exists())
        kill(worker, thread)
        assert worker.wait(30) == 3, worker.output
        assert "died: see the log" in worker.output
    with scheduler(live_database, jobs=FAST):
        wait_until(lambda: jobs.get(hanging).status == Status.COMPLETED, timeout=30)


@pytest.mark.parametrize("thread", ["jobs-waker", "jobs-async", "jobs-recorder"])
def test_threads_that_can_go_on_after_an_exit_do(live_database: str, thread: str) -> None:
    with scheduler(live_database, jobs=FAST) as worker:
        killer = faulty.kill_thread.enqueue(thread)
        wait_until(lambda: jobs.get(killer).is_finished or not worker.running)
        if worker.running:
            rows = [tasks.add.enqueue(1), tasks.aadd.enqueue(1)]
            wait_until(lambda: not worker.running or all(jobs.get(row).is_finished for row in rows), timeout=20)
        # Alive and at work, or gone with the code that says so; nothing between.
        assert worker.running or worker.wait() == 3
