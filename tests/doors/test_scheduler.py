"""The scheduler as code that embeds it sees it: limits, roles, join, callables of this process."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

import jobs
from jobs import Execution, InvalidOption, QueueNotDeclared
from jobs.domain.registry import registry
from jobs.models import Job, Worker
from jobs.scheduler import Scheduler
from tests.support import steered, tasks
from tests.support.engine import running
from tests.support.steered import open_door, trace, wait_for_begin
from tests.support.story import Story, failure_of, story_of
from tests.support.waiting import wait_until


@pytest.fixture
def queues(settings: Settings, live_database: str) -> tuple[str, ...]:
    names = ("default", "mail", "reports")
    settings.JOBS = {**settings.JOBS, "QUEUES": names}
    return names


def begun(folder: Path, rows: list[Job]) -> int:
    return sum(trace(folder, row.pk).exists() for row in rows)


def statuses(rows: list[Job]) -> set[str]:
    return {jobs.get(row).status for row in rows}


# -- limits


def test_peak_running_is_the_most_bodies_at_once(live_database: str, tmp_path: Path) -> None:
    with running(threads=3, async_slots=2) as scheduler:
        rows = [task.enqueue("stay", str(tmp_path)) for task in (steered.steer, steered.asteer) for _ in range(6)]
        wait_until(lambda: begun(tmp_path, rows) == 5, timeout=15)
        open_door(tmp_path)
        assert scheduler.join(30)
        assert scheduler.peak_running == 5
    assert statuses(rows) == {"completed"}


@pytest.mark.parametrize("task", [steered.steer, steered.asteer, steered.psteer])
def test_concurrency_bounds_what_is_in_flight_and_starves_no_execution(
    live_database: str, tmp_path: Path, task: Any
) -> None:
    with running(threads=4, async_slots=4, processes=2, concurrency=2, poll=0.05) as scheduler:
        rows = [task.enqueue("stay", str(tmp_path)) for _ in range(5)]
        wait_until(lambda: begun(tmp_path, rows) == 2, timeout=15)
        open_door(tmp_path)
        assert scheduler.join(30)
        assert scheduler.peak_running == 2
    assert statuses(rows) == {"completed"}


def test_concurrency_of_one_serves_every_execution_in_turn(live_database: str) -> None:
    order: list[str] = []
    with running(threads=4, async_slots=4, processes=1, concurrency=1) as scheduler:
        scheduler.add_listener(lambda move: order.append(move.task) if move.new == "running" else None)
        jobs.enqueue_many(
            [
                *(steered.steer.bind("complete") for _ in range(20)),
                steered.asteer.bind("complete"),
                steered.psteer.bind("complete"),
            ]
        )
        assert scheduler.join(30)
        assert scheduler.peak_running == 1
    # A long line of thread jobs holds up nobody else.
    assert order.index(steered.asteer.name) < 6
    assert order.index(steered.psteer.name) < 6


def test_a_number_after_a_queue_bounds_it_over_all_executions(queues: tuple[str, ...], tmp_path: Path) -> None:
    with running(threads=4, async_slots=4, queues={"mail": 1, "default": None}, poll=0.05) as scheduler:
        mails = [
            task.using(queue="mail").enqueue("stay", str(tmp_path))
            for task in (steered.steer, steered.asteer)
            for _ in range(3)
        ]
        others = [task.enqueue("stay", str(tmp_path)) for task in (steered.steer, steered.asteer) for _ in range(2)]
        wait_until(lambda: begun(tmp_path, others) == 4 and begun(tmp_path, mails) == 1, timeout=15)
        assert begun(tmp_path, mails) == 1
        open_door(tmp_path)
        assert scheduler.join(30)
        assert scheduler.peak_running == 5
    assert statuses([*mails, *others]) == {"completed"}


def test_only_the_named_queues_are_served(queues: tuple[str, ...]) -> None:
    mine = tasks.add.using(queue="mail").enqueue(1)
    not_mine = tasks.add.using(queue="reports").enqueue(1)
    with running(queues={"mail": None}) as scheduler:
        assert scheduler.join(15)
        assert Worker.objects.using(jobs.get(mine)._state.db).get().queues == ["mail"]
    assert (jobs.get(mine).status, jobs.get(not_mine).status) == ("completed", "pending")


def test_queues_take_turns(queues: tuple[str, ...]) -> None:
    order: list[int] = []
    rows = {
        queue: jobs.enqueue_many([tasks.add.using(queue=queue).bind(number) for number in range(10)])
        for queue in ("default", "mail")
    }
    with running(threads=1, claim_ahead=0) as scheduler:
        scheduler.add_listener(lambda move: order.append(move.job_id) if move.new == "running" else None)
        assert scheduler.join(15)
    mail_ids = {row.pk for row in rows["mail"]}
    first_half = [job_id in mail_ids for job_id in order[:10]]
    assert 4 <= sum(first_half) <= 6


def test_an_undeclared_queue_or_a_strange_role_is_refused(live_database: str) -> None:
    with pytest.raises(QueueNotDeclared, match="nowhere"):
        Scheduler(queues={"nowhere": None})
    with pytest.raises(InvalidOption, match="boss"):
        Scheduler(role="boss")


@pytest.mark.parametrize("task", [steered.steer, steered.asteer, steered.psteer])
def test_max_jobs_are_run_and_no_more(live_database: str, task: Any) -> None:
    rows = [task.enqueue("complete") for _ in range(6)]
    with running(processes=1, max_jobs=4) as scheduler:
        assert scheduler.join(30)
        assert [jobs.get(row).status for row in rows].count("completed") == 4
    assert [jobs.get(row).status for row in rows].count("pending") == 2


def test_max_jobs_counts_jobs_that_ran_not_claims_that_were_handed_back(live_database: str, tmp_path: Path) -> None:
    with running(threads=1, claim_ahead=10.0, hand_back_after=0.05, max_jobs=14, poll=0.05) as scheduler:
        for _ in range(10):  # from now on it takes the task for a quick one
            steered.steer.enqueue("complete")
        wait_until(lambda: statuses(list(Job.objects.using(live_database))) == {"completed"}, timeout=15)
        stays = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, stays)
        moves: list[str] = []
        scheduler.add_listener(lambda move: moves.append(f"{move.old}>{move.new}"))
        behind = [steered.steer.enqueue("complete") for _ in range(3)]
        wait_until(lambda: "running>pending" in moves, timeout=10)
        open_door(tmp_path)
        assert scheduler.join(15)
        assert statuses([stays, *behind]) == {"completed"}


# -- join


def test_join_gives_up_after_its_timeout(live_database: str, tmp_path: Path) -> None:
    with running() as scheduler:
        row = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        asked_at = time.monotonic()
        assert not scheduler.join(0.2)
        assert not scheduler.join(0.2, due_only=True)
        assert 0.4 <= time.monotonic() - asked_at < 5
        open_door(tmp_path)
        assert scheduler.join(15)


def test_join_waits_for_jobs_of_the_future_unless_only_due_ones_count(live_database: str) -> None:
    with running() as scheduler:
        later = tasks.add.using(delay=3600).enqueue(1)
        now = tasks.add.enqueue(2)
        assert scheduler.join(15, due_only=True)
        assert not scheduler.join(0.1)
        assert (jobs.get(now).status, jobs.get(later).status) == ("completed", "scheduled")
        jobs.cancel(later)
        assert scheduler.join(15)


def test_join_waits_for_retries(live_database: str) -> None:
    row = tasks.fail_twice.enqueue()
    with running() as scheduler:
        assert scheduler.join(15)
    assert jobs.get(row).status == "completed"


def test_join_waits_for_what_jobs_enqueue(live_database: str) -> None:
    with running() as scheduler:
        tasks.fan_out.enqueue(3)
        assert scheduler.join(15)
    assert statuses(list(Job.objects.using(live_database))) == {"completed"}
    assert Job.objects.using(live_database).count() == 1 + 3 + 9 + 27


# -- roles


@pytest.mark.parametrize("model", steered.MODELS, ids=lambda model: model.execution.value)
def test_the_roles_work_apart(live_database: str, model: steered.Model) -> None:
    policy = jobs.RetryPolicy(max_retries=2, base_delay=0.1, jitter=False)
    with running(role="scheduler", name="scheduling") as scheduling:
        waiting = model.steer.using(delay=0.1).enqueue("complete")
        wait_until(lambda: jobs.get(waiting).status == "pending", timeout=15)
        assert scheduling.peak_running == 0
        with running(role="worker", name="working", poll=600.0, **model.slots) as working:
            retried = model.steer.using(retry=policy).enqueue("fail_twice")
            assert working.join(30)
            assert {(one.name, one.role) for one in Worker.objects.using(live_database)} == {
                ("scheduling", "scheduler"),
                ("working", "worker"),
            }
    assert story_of(waiting) == Story("completed", ["completed"], [], 1)
    assert story_of(retried) == Story("completed", ["failed"] * 2 + ["completed"], ["ValueError"] * 2, 3)


def test_a_worker_without_a_scheduler_promotes_nothing(live_database: str) -> None:
    later = tasks.add.using(delay=0.05).enqueue(1)
    wait_until(lambda: jobs.get(later).run_at < jobs.get(tasks.add.enqueue(1)).submitted_at, timeout=5)
    with running(role="worker") as worker:
        wait_until(lambda: statuses(list(Job.objects.using(live_database).exclude(pk=later.pk))) == {"completed"})
        assert not worker.join(0)
    assert jobs.get(later).status == "scheduled"


# -- callables of this process


def test_a_scheduled_callable_runs_here_once(live_database: str) -> None:
    called = threading.Event()
    with running() as scheduler:
        job_id = scheduler.schedule(called.set)
        assert scheduler.join(15)
        assert called.is_set()
    assert story_of(job_id) == Story("completed", ["completed"])


def test_a_lambda_a_coroutine_function_and_a_method_can_be_scheduled_and_are_forgotten(live_database: str) -> None:
    async def seven() -> int:
        return 7

    before = registry.names()
    with running() as scheduler:
        ids = [scheduler.schedule(lambda: 6), scheduler.schedule(seven, 0.05), scheduler.schedule("x".upper)]
        assert [jobs.get(job_id).status for job_id in ids][1] == "scheduled"
        assert scheduler.join(15)
        assert [story_of(job_id).result for job_id in ids] == [6, 7, "X"]
    assert registry.names() == before


def test_a_callable_may_be_scheduled_before_the_start(live_database: str) -> None:
    called = threading.Event()
    scheduler = Scheduler(poll=0.2, threads=1, async_slots=1, processes=0)
    job_id = scheduler.schedule(called.set, 0.05)
    assert not called.is_set()
    scheduler.start()
    try:
        assert scheduler.join(15)
    finally:
        scheduler.shutdown()
    assert (called.is_set(), jobs.get(job_id).status) == (True, "completed")


def test_a_scheduled_callable_can_be_cancelled_before_and_while_it_runs(live_database: str) -> None:
    called, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        called.set()
        go_on.wait(30)

    with running(cancel_grace=0.1) as scheduler:
        later = scheduler.schedule(wait, 3600)
        assert scheduler.cancel(later)
        assert not scheduler.cancel(later)
        assert not scheduler.cancel(987654321)
        now = scheduler.schedule(wait)
        assert called.wait(15)
        assert scheduler.cancel(now)
        wait_until(lambda: jobs.get(now).status == "cancelled", timeout=10)
        go_on.set()
        assert scheduler.join(15)


def test_a_callable_whose_process_is_gone_ends_as_task_not_found(live_database: str) -> None:
    gone = Scheduler(poll=0.2, threads=1, async_slots=0, processes=0)
    job_id = gone.schedule(lambda: None)
    registry.remove(jobs.get(job_id).task)  # as if the process had died
    gone.stop()
    with running(task_not_found_after=0.1, unknown_task_pause=0.1, poll=0.1) as scheduler:
        assert scheduler.join(15)
    assert story_of(job_id) == Story("failed", ["failed"], ["TaskNotFound"])
    assert "task not found" in failure_of(jobs.get(job_id)).message


def test_a_failed_callable_is_one_recorded_failure(live_database: str) -> None:
    def fail() -> None:
        raise ValueError("here")

    with running() as scheduler:
        job_id = scheduler.schedule(fail)
        assert scheduler.join(15)
    assert story_of(job_id) == Story("failed", ["failed"], ["ValueError"])


def test_two_schedulers_of_one_process_share_the_work(live_database: str, tmp_path: Path) -> None:
    with running(threads=1) as first, running(threads=1) as second:
        rows = [steered.steer.enqueue("stay", str(tmp_path)) for _ in range(2)]
        wait_until(lambda: begun(tmp_path, rows) == 2, timeout=15)
        open_door(tmp_path)
        assert first.join(15) and second.join(15)
        assert (first.peak_running, second.peak_running) == (1, 1)
    assert {one.execution for one in map(jobs.get, rows)} == {Execution.THREAD}
