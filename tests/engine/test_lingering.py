"""Calls that cannot be killed: their attempts end on time, their slots and their jobs wait for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs import Execution, RetryPolicy
from jobs.domain.claim import Claim
from jobs.domain.outcome import Outcome
from jobs.engine.in_flight import InFlight
from jobs.engine.lease_keeper import LeaseKeeper
from jobs.models import Attempt, Job
from jobs.scheduler import Scheduler
from tests.support import steered, talking
from tests.support.engine import running
from tests.support.steered import open_door, trace, wait_for_begin
from tests.support.story import Story, assert_sound, attempts_of, story_of
from tests.support.waiting import wait_until

RETRY = RetryPolicy(max_retries=1, base_delay=0)

STUBBORN: list[Any] = [
    pytest.param(Execution.THREAD, steered.steer, "deaf", id="thread"),
    pytest.param(Execution.ASYNC, steered.asteer, "cling", id="async"),
]


def last_attempt(row: Job) -> Attempt:
    return attempts_of(jobs.get(row))[-1]


def wait_for_status(row: Job, status: str) -> None:
    wait_until(lambda: jobs.get(row).status == status, timeout=15, what=f"job {row.pk} is {status}")


def busy(scheduler: Scheduler, execution: Execution = Execution.THREAD) -> int:
    return scheduler.in_flight.busy(execution)


def test_the_retry_of_a_timed_out_thread_job_waits_until_the_old_call_has_returned(
    live_database: str, tmp_path: Path
) -> None:
    with running() as scheduler:
        row = steered.steer.using(timeout=0.1, retry=RETRY).enqueue("deaf_once", str(tmp_path))
        wait_for_status(row, "retry_wait")
        assert story_of(row) == Story("retry_wait", ["timed_out"], ["TimedOut"])
        assert last_attempt(row).lingering_until is not None
        # Others run beside it, more than one round long: the retry is due, and is not taken.
        for _ in range(5):
            assert steered_result(scheduler) == 1
        assert jobs.get(row).status == "retry_wait"
        assert not trace(tmp_path, row.pk, 2).exists()
        assert busy(scheduler) == 1
        open_door(tmp_path)
        assert scheduler.join(10)
    assert story_of(row) == Story("completed", ["timed_out", "completed"], ["TimedOut"], 2)
    assert [attempt.lingering_until for attempt in attempts_of(jobs.get(row))] == [None, None]


def steered_result(scheduler: Scheduler) -> int:
    row = steered.steer.enqueue("complete")
    wait_for_status(row, "completed")
    return int(jobs.get(row).result)


def test_the_slot_of_a_lingering_call_is_busy_until_it_returns(live_database: str, tmp_path: Path) -> None:
    with running(threads=1) as scheduler:
        stuck = steered.steer.using(timeout=0.1).enqueue("deaf", str(tmp_path))
        wait_for_status(stuck, "timed_out")
        other = steered.steer.enqueue("complete", str(tmp_path))
        beside = steered.asteer.enqueue("complete")
        wait_for_status(beside, "completed")
        assert (busy(scheduler), jobs.get(other).status) == (1, "pending")
        assert not scheduler.join(0)
        open_door(tmp_path)
        assert scheduler.join(10)
        assert busy(scheduler) == 0
    assert story_of(other) == Story("completed", ["completed"], [], 1)
    assert story_of(stuck) == Story("timed_out", ["timed_out"], ["TimedOut"])


@pytest.mark.parametrize(("execution", "task", "how"), STUBBORN)
def test_a_cancelled_call_that_goes_on_ends_as_cancelled_after_the_grace_and_lingers(
    live_database: str, tmp_path: Path, execution: Execution, task: Any, how: str
) -> None:
    with running(cancel_grace=0.2) as scheduler:
        row = task.enqueue(how, str(tmp_path))
        wait_for_begin(tmp_path, row)
        assert jobs.cancel(row)
        wait_for_status(row, "cancelled")
        assert last_attempt(row).lingering_until is not None
        assert busy(scheduler, execution) == 1
        assert last_attempt(row).reason.startswith("cancelled while running; its")
        open_door(tmp_path)
        wait_until(lambda: last_attempt(row).lingering_until is None, timeout=10)
        assert busy(scheduler, execution) == 0
    # What it returned in the end is nobody's.
    assert story_of(row) == Story("cancelled", ["cancelled"])
    assert_sound(live_database)


@pytest.mark.parametrize(("execution", "task", "how"), STUBBORN)
def test_a_timed_out_call_that_goes_on_ends_as_timed_out_and_lingers(
    live_database: str, tmp_path: Path, execution: Execution, task: Any, how: str
) -> None:
    with running(cancel_grace=0.2) as scheduler:
        row = task.using(timeout=0.1).enqueue(how, str(tmp_path))
        wait_for_status(row, "timed_out")
        assert last_attempt(row).lingering_until is not None
        assert busy(scheduler, execution) == 1
        open_door(tmp_path)
        wait_until(lambda: last_attempt(row).lingering_until is None, timeout=10)
    assert story_of(row) == Story("timed_out", ["timed_out"], ["TimedOut"])


def test_a_call_that_returned_just_before_the_stop_leaves_no_mark(
    live_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The lease keeper does not hear of it in time.
    monkeypatch.setattr(LeaseKeeper, "note_returned", lambda keeper, held: keeper._returned.append(held))
    with running(poll=0.05, renew=20.0) as scheduler:
        row = steered.steer.using(timeout=0.1).enqueue("deaf", str(tmp_path))
        wait_for_status(row, "timed_out")
        assert last_attempt(row).lingering_until is not None
        open_door(tmp_path)
        wait_until(lambda: busy(scheduler) == 0, timeout=10)
    assert last_attempt(row).lingering_until is None


@pytest.mark.parametrize(("execution", "task", "how"), STUBBORN)
def test_a_call_that_returns_while_its_end_on_paper_is_being_written_frees_its_slot(
    live_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: Execution, task: Any, how: str
) -> None:
    finished, returned, came_back = InFlight.finished, InFlight.returned, threading.Event()

    def late(in_flight: InFlight, claim: Claim, outcome: Outcome, *, lingers: bool = False) -> None:
        if lingers:
            open_door(tmp_path)
            assert came_back.wait(10)
        finished(in_flight, claim, outcome, lingers=lingers)

    def early(in_flight: InFlight, claim: Claim) -> None:
        returned(in_flight, claim)
        came_back.set()

    monkeypatch.setattr(InFlight, "finished", late)
    monkeypatch.setattr(InFlight, "returned", early)
    with running(cancel_grace=0.1) as scheduler:
        row = task.using(timeout=0.1, retry=RETRY).enqueue(how, str(tmp_path))
        assert scheduler.join(10), story_of(row)
        assert busy(scheduler, execution) == 0
    assert story_of(row) == Story("completed", ["timed_out", "completed"], ["TimedOut"], 2)


def test_a_cancelled_thread_job_that_asks_its_context_ends_at_once_and_does_not_linger(
    live_database: str, tmp_path: Path
) -> None:
    with running(cancel_grace=60.0) as scheduler:
        row = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        assert jobs.cancel(row)
        wait_for_status(row, "cancelled")
        assert scheduler.join(10)
    assert last_attempt(row).lingering_until is None


def test_a_success_within_the_cancel_grace_stays_a_success(live_database: str, tmp_path: Path) -> None:
    with running(cancel_grace=60.0) as scheduler:
        row = steered.steer.enqueue("deaf", str(tmp_path))
        wait_for_begin(tmp_path, row)
        assert jobs.cancel(row)
        open_door(tmp_path)
        assert scheduler.join(10)
    assert story_of(row) == Story("completed", ["completed"], [], 1)


def test_a_lingering_call_writes_nothing_more(live_database: str, tmp_path: Path) -> None:
    with running() as scheduler:
        row = talking.report_late.using(timeout=0.1).enqueue(str(tmp_path))
        wait_for_status(row, "timed_out")
        open_door(tmp_path)
        assert scheduler.join(10)
        beside = talking.report_late.enqueue(str(tmp_path))
        assert scheduler.join(10)
    assert last_attempt(beside).progress_done == 2
    assert last_attempt(row).progress_done == 1


def test_a_requeued_job_waits_for_its_old_call_too(live_database: str, tmp_path: Path) -> None:
    with running() as scheduler:
        row = steered.steer.using(timeout=0.1).enqueue("deaf_once", str(tmp_path))
        wait_for_status(row, "timed_out")
        assert jobs.requeue(row)
        assert steered_result(scheduler) == 1
        assert jobs.get(row).status == "scheduled"
        open_door(tmp_path)
        assert scheduler.join(10)
    assert story_of(row) == Story("completed", ["timed_out", "completed"], ["TimedOut"], 2)


def test_the_mark_of_a_lingering_call_is_renewed_like_a_lease(live_database: str, tmp_path: Path) -> None:
    with running(lease=1.0, renew=0.1):
        row = steered.steer.using(timeout=0.1).enqueue("deaf", str(tmp_path))
        wait_for_status(row, "timed_out")
        first = last_attempt(row).lingering_until
        assert first is not None
        wait_until(lambda: (last_attempt(row).lingering_until or first) > first, timeout=10)
        open_door(tmp_path)


def test_another_worker_waits_for_a_lingering_call_as_well(live_database: str, tmp_path: Path) -> None:
    with running() as first:
        row = steered.steer.using(timeout=0.1, retry=RETRY).enqueue("deaf_once", str(tmp_path))
        wait_for_status(row, "retry_wait")
        with running() as second:
            assert steered_result(second) == 1
            assert jobs.get(row).status == "retry_wait"
            open_door(tmp_path)
            assert first.join(10)
    assert story_of(row) == Story("completed", ["timed_out", "completed"], ["TimedOut"], 2)
