"""SIGTERM and Ctrl-C: what runs may finish for the grace time, the rest is handed back, the exit code is 0."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path

import pytest

import jobs
from jobs import Status
from jobs.models import Attempt, Job, Worker
from tests.support import tasks
from tests.support.models import Effect, effects
from tests.support.processes import ChildProcess, manage
from tests.support.schedulers import STARTED, catches, orphaned, scheduler, statuses, url_of
from tests.support.waiting import wait_until

ONE_OF_EACH = (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)
SLOTS = ("--threads=4", "--async=10", "--processes=2")


def begin(alias: str, until: str = "") -> list[Job]:
    """One job of each execution that runs until a file of that name exists."""
    label = until or "for ever"
    rows = [task.enqueue(label, until) for task in ONE_OF_EACH]
    wait_until(lambda: Effect.objects.using(alias).filter(label=label).count() == len(rows), what="all have begun")
    return rows


def assert_handed_back(alias: str, rows: list[Job]) -> None:
    for row in rows:
        stored = jobs.get(row)
        counts = (stored.failures, stored.losses, stored.interruptions)
        assert (stored.status, counts) == (Status.PENDING, (0, 0, 1)), stored.task
        assert Attempt.objects.using(alias).get(job_id=row.pk).outcome == "interrupted"


def test_a_stopped_worker_lets_jobs_finish_and_hands_the_others_back(live_database: str, tmp_path: Path) -> None:
    with scheduler(live_database, "--grace=2", *SLOTS) as worker:
        finishing = begin(live_database, str(tmp_path / "leave"))
        hanging = begin(live_database)
        worker.send(signal.SIGTERM)
        worker.wait_for("stopping: no new jobs")
        late = tasks.leave_mark.enqueue("late")
        (tmp_path / "leave").touch()
        assert worker.wait() == 0, worker.output
        below = worker.descendants()
    assert "Traceback" not in worker.output
    assert not below
    assert [jobs.get(row).status for row in finishing] == [Status.COMPLETED] * 3
    assert_handed_back(live_database, hanging)
    assert jobs.get(late).status == Status.PENDING
    assert not Worker.objects.using(live_database).exists()
    # Another process starts them at once: no lease, no backoff, no lingering call is waited for.
    with scheduler(live_database, *SLOTS) as other:
        wait_until(lambda: statuses(live_database) == {"completed": 7}, timeout=10)
        other.send(signal.SIGTERM)
        assert other.wait() == 0
    assert [(jobs.get(row).attempts, jobs.get(row).failures) for row in hanging] == [(2, 0)] * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_grace_at_once(live_database: str, number: signal.Signals) -> None:
    with scheduler(live_database, "--grace=600") as worker:
        hanging = begin(live_database)
        worker.send(number)
        worker.wait_for("stopping: no new jobs")
        assert worker.running
        worker.send(number)
        assert worker.wait(15) == 0, worker.output
    assert "Traceback" not in worker.output
    assert_handed_back(live_database, hanging)


def test_a_call_that_nothing_ends_in_an_async_job_does_not_keep_the_process(live_database: str) -> None:
    with scheduler(live_database, "--grace=0.5") as worker:
        row = tasks.block_its_sync_thread.enqueue("begun")
        wait_until(lambda: effects(live_database, "begun"))
        worker.send(signal.SIGTERM)
        assert worker.wait(15) == 0, worker.output
    assert "Traceback" not in worker.output and "destroyed" not in worker.output, worker.output
    assert_handed_back(live_database, [row])


@pytest.mark.parametrize("cancelled", [False, True])
def test_an_async_job_that_swallows_whatever_is_raised_in_it_does_not_keep_the_process(
    live_database: str, cancelled: bool
) -> None:
    with scheduler(live_database, "--grace=0.5", "--processes=0", jobs={"CANCEL_GRACE": 0.2}) as worker:
        row = tasks.swallow_everything.enqueue("begun")
        wait_until(lambda: effects(live_database, "begun"))
        if cancelled:
            assert jobs.cancel(row)
            wait_until(lambda: jobs.get(row).status == Status.CANCELLED)
        worker.send(signal.SIGTERM)
        assert worker.wait(6.5) == 0, worker.output
    assert "Traceback" not in worker.output and "destroyed" not in worker.output, worker.output
    if not cancelled:
        assert_handed_back(live_database, [row])


def test_a_task_that_an_ended_job_left_on_the_loop_does_not_keep_the_process(live_database: str) -> None:
    with scheduler(live_database, "--grace=0.5", "--processes=0") as worker:
        row = tasks.leave_a_task_behind.enqueue("begun")
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
        worker.send(signal.SIGTERM)
        assert worker.wait(6.5) == 0, worker.output
    assert "Traceback" not in worker.output and "destroyed" not in worker.output, worker.output


EMBEDDED = """
import gc, jobs
from tests.support import tasks
scheduler = jobs.Scheduler(poll=0.2, threads=1, async_slots=2, processes=0)
scheduler.start()
tasks.swallow_everything.enqueue("embedded")
assert tasks.gate("embedded:in").wait(20)
scheduler.stop(timeout=0)
del scheduler
gc.collect()
print("goes on")
"""


def test_a_process_with_a_scheduler_in_it_outlives_such_a_job_and_ends_when_it_wants(live_database: str) -> None:
    with manage("shell", "-c", EMBEDDED, database_url=url_of(live_database)) as process:
        process.wait_for("goes on")
        assert process.wait(6.5) == 0, process.output
    assert "Traceback" not in process.output and "destroyed" not in process.output, process.output


def test_ctrl_c_reaches_the_whole_group_and_stops_gracefully(live_database: str, tmp_path: Path) -> None:
    with scheduler(live_database, "--grace=2", *SLOTS) as worker:
        finishing = begin(live_database, str(tmp_path / "leave"))
        hanging = begin(live_database)
        worker.send(signal.SIGINT, group=True)
        worker.wait_for("stopping: no new jobs")
        (tmp_path / "leave").touch()
        assert worker.wait() == 0, worker.output
    assert "Traceback" not in worker.output
    assert "KeyboardInterrupt" not in worker.output
    assert [jobs.get(row).status for row in finishing] == [Status.COMPLETED] * 3
    assert_handed_back(live_database, hanging)


def test_a_terminate_for_the_whole_group_leaves_child_processes_their_grace(live_database: str, tmp_path: Path) -> None:
    with scheduler(live_database, "--grace=20", *SLOTS) as worker:
        finishing = begin(live_database, str(tmp_path / "leave"))
        for process in worker.descendants():  # as systemd does with every process of a unit
            process.terminate()
        worker.send(signal.SIGTERM)
        worker.wait_for("stopping: no new jobs")
        (tmp_path / "leave").touch()
        assert worker.wait() == 0, worker.output
    assert "Traceback" not in worker.output
    assert [jobs.get(row).status for row in finishing] == [Status.COMPLETED] * 3


def stop_at_random_instants(alias: str, rounds: int, rng: random.Random) -> None:
    """Start processes, six at a time, and stop each at an instant of its own, from its first line of code on."""
    calls = [tasks.pleave_mark.bind("random"), tasks.aleave_mark.bind("random"), tasks.leave_mark.bind("random")]
    calls += [task.bind(0.05) for task in (tasks.sleep_in_process, tasks.sleep_in_thread, tasks.sleep_on_loop)]
    jobs.enqueue_many(calls * 400)
    for _ in range(0, rounds, 6):
        workers: list[ChildProcess] = []
        with_each = [scheduler(alias, "--grace=0.2", wait=False) for _ in range(6)]
        try:
            workers = [one.__enter__() for one in with_each]
            # One while Django still loads, two until it is ready or later, three at work, however slow the host.
            delays = [rng.uniform(0, 0.1), *(rng.uniform(0.2, 3) for _ in workers[1:])]
            at_work = [False] * 3 + [True] * 3
            stops = zip(workers, delays, at_work, strict=True)
            threads = [threading.Thread(target=_stop, args=one) for one in stops]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            codes = [one.wait(40) for one in workers]
        finally:
            for one in with_each:
                one.__exit__(None, None, None)
        said = "\n---\n".join(one.output for one in workers)
        assert codes == [0] * 6, said
        assert "Traceback" not in said, said
        assert orphaned(alias) == 0, said
        assert statuses(alias).get("running", 0) == 0, said
    stored = Job.objects.using(alias)
    assert stored.filter(status=Status.COMPLETED).exists()
    assert not stored.filter(failures__gt=0).exists()
    assert not stored.filter(losses__gt=0).exists()


def _stop(worker: ChildProcess, delay: float, at_work: bool) -> None:
    if at_work:
        worker.wait_for(STARTED)
    wait_until(lambda: not worker.running or catches(worker.pid, signal.SIGTERM), what="its handler is there")
    threading.Event().wait(delay)
    worker.send(signal.SIGTERM)


def test_a_worker_stopped_at_any_instant_leaves_no_orphan(live_database: str) -> None:
    stop_at_random_instants(live_database, 6 if live_database == "default" else 18, random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("eighth", range(8))
def test_two_hundred_workers_stopped_at_any_instant_leave_no_orphan(live_database: str, eighth: int) -> None:
    stop_at_random_instants(live_database, 25, random.Random())
