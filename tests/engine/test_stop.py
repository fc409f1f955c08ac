"""Stopping a scheduler: it waits, interrupts, hands back, and ends in bounded time whatever the jobs do."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs import RetryPolicy
from jobs.domain.move import listeners
from jobs.models import Worker
from jobs.scheduler import Scheduler
from tests.support import steered, tasks
from tests.support.engine import running
from tests.support.steered import Model, open_door, wait_for_begin
from tests.support.story import Story, assert_sound, attempts_of, failure_of, story_of
from tests.support.waiting import wait_until


@contextmanager
def stopping(scheduler: Scheduler, **how: Any) -> Iterator[threading.Thread]:
    """`stop()` under way in another thread."""
    thread = threading.Thread(target=scheduler.stop, kwargs=how)
    thread.start()
    try:
        yield thread
    finally:
        scheduler.hurry()
        thread.join(30)
        assert not thread.is_alive()


def test_a_stop_lets_running_jobs_finish_within_the_grace_and_starts_no_more(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    with running(grace=60.0, **model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        with stopping(scheduler) as stop:
            wait_until(lambda: not scheduler._dispatcher.loop.alive, timeout=10)
            late = model.steer.enqueue("complete", str(tmp_path))
            open_door(tmp_path)
            stop.join(30)
            assert not stop.is_alive()
    assert story_of(row) == Story("completed", ["completed"], [], 1)
    assert story_of(late) == Story("pending")


def test_what_still_runs_after_the_grace_is_handed_back_and_starts_at_once_elsewhere(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    with running(**model.slots) as scheduler:
        row = model.steer.using(retry=RetryPolicy(max_retries=1)).enqueue("stay_once", str(tmp_path))
        wait_for_begin(tmp_path, row)
        scheduler.stop(timeout=0.1)
        assert story_of(row) == Story("pending", ["interrupted"])
        job = jobs.get(row)
        assert (job.interruptions, job.failures, job.losses, job.attempts) == (1, 0, 0, 1)
        assert_sound(live_database)
    with running(**model.slots) as other:
        assert other.join(30)
    assert story_of(row) == Story("completed", ["interrupted", "completed"], [], 2)


def test_a_sleeping_scheduler_is_woken_by_what_another_hands_back(live_database: str, tmp_path: Path) -> None:
    with running(poll=600.0) as first:
        row = steered.steer.enqueue("stay_once", str(tmp_path))
        wait_for_begin(tmp_path, row)
        with running(poll=600.0) as other:
            wait_until(lambda: other._dispatcher.asleep, timeout=10)
            first.stop(timeout=0.0)
            assert other.join(10)
    assert story_of(row) == Story("completed", ["interrupted", "completed"], [], 2)


def test_an_interrupted_at_most_once_job_fails_as_outcome_unknown_whatever_its_retries(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    options = {"at_most_once": True, "retry": RetryPolicy(max_retries=5, base_delay=0)}
    with running(**model.slots) as scheduler:
        row = model.steer.using(**options).enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        scheduler.stop(timeout=0.1)
    assert story_of(row) == Story("failed", ["interrupted"], ["OutcomeUnknown"])
    assert failure_of(jobs.get(row)).message.startswith("outcome unknown")
    assert jobs.get(row).interruptions == 0


def test_a_timed_out_at_most_once_job_is_not_retried_but_one_that_raised_is(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    once = model.steer.using(at_most_once=True, retry=RetryPolicy(max_retries=5, base_delay=0))
    stays = once.using(timeout=0.2).enqueue("stay", str(tmp_path))
    fails = once.enqueue("fail_twice", str(tmp_path))
    with running(**model.slots) as scheduler:
        assert scheduler.join(30)
    assert story_of(stays) == Story("failed", ["timed_out"], ["OutcomeUnknown"])
    assert story_of(fails) == Story("completed", ["failed", "failed", "completed"], ["ValueError"] * 2, 3)


def test_stop_with_cancel_running_does_not_wait_for_the_grace(live_database: str, model: Model, tmp_path: Path) -> None:
    with running(grace=600.0, **model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        asked_at = time.monotonic()
        scheduler.stop(cancel_running=True)
        assert time.monotonic() - asked_at < 15
    assert story_of(row) == Story("pending", ["interrupted"])


@pytest.mark.parametrize(("process_ends", "thread_goes_to"), [(True, "pending"), (False, "scheduled")])
def test_jobs_that_do_not_hear_do_not_hold_up_a_stop(
    live_database: str, tmp_path: Path, process_ends: bool, thread_goes_to: str
) -> None:
    """Where this process lives on, its calls do: their jobs wait until they have returned."""
    with running(processes=1, cancel_grace=600.0, process_ends=process_ends) as scheduler:
        stubborn = [
            steered.steer.enqueue("deaf", str(tmp_path)),
            steered.asteer.enqueue("cling", str(tmp_path)),
            steered.psteer.enqueue("cling", str(tmp_path)),
        ]
        for row in stubborn:
            wait_for_begin(tmp_path, row)
        asked_at = time.monotonic()
        scheduler.stop(timeout=0.1)
        assert time.monotonic() - asked_at < 15
        ends = [thread_goes_to, thread_goes_to, "pending"]
        assert [story_of(row) for row in stubborn] == [Story(end, ["interrupted"]) for end in ends]
        open_door(tmp_path)
    assert_sound(live_database)


def test_an_async_job_that_a_stop_abandons_goes_without_a_word(
    live_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task outlives its scheduler: collecting it would run it once more, in no loop and no context of its own."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with running(process_ends=True, cancel_grace=600.0) as scheduler:
        row = steered.asteer.enqueue("cling", str(tmp_path))
        wait_for_begin(tmp_path, row)
        scheduler.stop(timeout=0.1)
    assert story_of(row) == Story("pending", ["interrupted"])
    del scheduler
    gc.collect()
    assert told == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_second_stop_shortens_the_grace_to_nothing(live_database: str, tmp_path: Path) -> None:
    with running(grace=600.0) as scheduler:
        row = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        with stopping(scheduler) as stop:
            wait_until(lambda: not scheduler._dispatcher.loop.alive, timeout=10)
            scheduler.stop()
            stop.join(15)
            assert not stop.is_alive()
    assert story_of(row) == Story("pending", ["interrupted"])


def test_a_cancel_during_the_grace_is_heard(live_database: str, model: Model, tmp_path: Path) -> None:
    with running(grace=600.0, **model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        with stopping(scheduler) as stop:
            wait_until(lambda: not scheduler._dispatcher.loop.alive, timeout=10)
            assert jobs.cancel(row)
            stop.join(15)
            assert not stop.is_alive()
    assert story_of(row) == Story("cancelled", ["cancelled"])


def test_a_timeout_during_the_grace_fires(live_database: str, tmp_path: Path) -> None:
    with running(grace=600.0) as scheduler:
        row = steered.asteer.using(timeout=0.5).enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        with stopping(scheduler) as stop:
            stop.join(15)
            assert not stop.is_alive()
    assert story_of(row) == Story("timed_out", ["timed_out"], ["TimedOut"])


def test_what_was_claimed_ahead_goes_back_as_if_it_had_never_been_claimed(live_database: str, tmp_path: Path) -> None:
    with running(threads=1, claim_ahead=10.0, hand_back_after=600.0) as scheduler:
        quick = [tasks.add.enqueue(number) for number in range(10)]
        assert scheduler.join(15)  # from now on it takes the task for a quick one
        stays = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, stays)
        waiting = [tasks.add.enqueue(number) for number in range(5)]
        wait_until(lambda: any(jobs.get(row).status == "running" for row in waiting), timeout=10)
        scheduler.stop(timeout=0.1)
    assert [story_of(row) for row in waiting] == [Story("pending")] * 5
    assert {jobs.get(row).attempts for row in waiting} == {0}
    assert {story_of(row).status for row in quick} == {"completed"}
    assert_sound(live_database)


def test_start_and_stop_are_safe_twice(live_database: str) -> None:
    scheduler = Scheduler(poll=0.2, threads=1, async_slots=1, processes=0)
    scheduler.start()
    scheduler.start()
    row = tasks.add.enqueue(1)
    assert scheduler.join(15)
    scheduler.stop()
    scheduler.stop()
    assert story_of(row) == Story("completed", ["completed"], [], 1)
    assert not Worker.objects.using(live_database).exists()


def test_a_scheduler_that_never_started_can_be_stopped_and_leaves_nothing(live_database: str) -> None:
    before = len(listeners._listeners)
    scheduler = Scheduler(poll=0.2, threads=1, async_slots=1, processes=1)
    scheduler.stop()
    scheduler.stop(cancel_running=True)
    scheduler.shutdown()
    assert len(listeners._listeners) == before


def test_a_stopped_scheduler_leaves_no_thread_behind(live_database: str) -> None:
    before = set(threading.enumerate())
    with running(processes=1) as scheduler:
        rows = [tasks.add.enqueue(1), tasks.aadd.enqueue(1), tasks.padd.enqueue(1)]
        assert scheduler.join(30)
    wait_until(
        lambda: not [one for one in set(threading.enumerate()) - before if one.name.startswith("jobs-")], timeout=10
    )
    assert {story_of(row).status for row in rows} == {"completed"}
    assert [attempt.outcome for row in rows for attempt in attempts_of(jobs.get(row))] == ["completed"] * 3
