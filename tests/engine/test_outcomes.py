"""How jobs end: each execution, each way a body can behave, one recorded outcome per attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.utils import timezone

import jobs
from jobs import Execution, RetryPolicy
from jobs.store.cancel import cancel
from jobs.store.database import database
from tests.support import tasks
from tests.support.engine import running
from tests.support.steered import Model, open_door, psteer, steer, wait_for_begin
from tests.support.story import Story, assert_sound, attempts_of, failure_of, story_of
from tests.support.waiting import wait_until

RETRIES = RetryPolicy(max_retries=2, base_delay=0)

ENDS: dict[str, tuple[dict[str, Any], Story]] = {
    "complete": ({}, Story("completed", ["completed"], [], 1)),
    "fail": ({}, Story("failed", ["failed"], ["ValueError"])),
    "fail (retries)": ({"retry": RETRIES}, Story("failed", ["failed"] * 3, ["ValueError"] * 3)),
    "fail_twice": ({"retry": RETRIES}, Story("completed", ["failed"] * 2 + ["completed"], ["ValueError"] * 2, 3)),
    "stay (timeout)": ({"timeout": 0.2}, Story("timed_out", ["timed_out"], ["TimedOut"])),
    "stay_once": (
        {"timeout": 0.2, "retry": RETRIES},
        Story("completed", ["timed_out", "completed"], ["TimedOut"], 2),
    ),
    "snooze_once": ({}, Story("completed", ["interrupted", "completed"], [], 2)),
    "cancel_itself": ({"retry": RETRIES}, Story("cancelled", ["cancelled"])),
    "give_up": ({"retry": RETRIES}, Story("failed", ["failed"], ["NonRetryableError"])),
    "complete (no result)": ({"store_result": False}, Story("completed", ["completed"])),
}


def test_every_way_a_body_ends_is_recorded_as_what_it_was(live_database: str, model: Model, tmp_path: Path) -> None:
    rows = {
        name: model.steer.using(**options).enqueue(name.partition(" ")[0], str(tmp_path))
        for name, (options, _) in ENDS.items()
    }
    with running(**{"threads": 2, **model.slots}) as scheduler:
        assert scheduler.join(60)
    assert {name: story_of(row) for name, row in rows.items()} == {name: story for name, (_, story) in ENDS.items()}
    assert_sound(live_database)
    assert jobs.get(rows["cancel_itself"]).cause == "changed my mind"
    snoozed = jobs.get(rows["snooze_once"])
    assert (snoozed.snoozes, snoozed.failures) == (1, 0)
    failed = jobs.get(rows["fail (retries)"])
    assert (failed.attempts, failed.failures, failed.losses, failed.interruptions) == (3, 3, 0, 0)
    failure = failure_of(failed)
    assert (failure.message, failure.module, failure.function) == ("boom", "tests.support.steered", "_stays")
    assert "ValueError: boom" in failure.traceback
    completed = jobs.get(rows["complete"])
    attempt = attempts_of(completed)[0]
    assert attempt.started_at is not None and attempt.ended_at is not None
    assert completed.submitted_at <= attempt.claimed_at <= attempt.started_at <= attempt.ended_at


def test_a_waiting_job_that_is_cancelled_never_begins(live_database: str, model: Model, tmp_path: Path) -> None:
    pending = model.steer.enqueue("complete", str(tmp_path))
    later = model.steer.using(delay=3600).enqueue("complete", str(tmp_path))
    assert jobs.cancel(pending, "not needed", actor="ann")
    assert jobs.cancel(later)
    with running(**model.slots) as scheduler:
        assert scheduler.join(30)
    assert [story_of(row) for row in (pending, later)] == [Story("cancelled")] * 2
    assert jobs.get(pending).cause == "cancelled by ann: not needed"
    assert list(tmp_path.iterdir()) == []


def test_a_running_job_that_is_cancelled_ends_cancelled_and_is_not_retried(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    with running(**model.slots) as scheduler:
        row = model.steer.using(retry=RETRIES).enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        assert jobs.cancel(row)
        assert scheduler.join(30)
    assert story_of(row) == Story("cancelled", ["cancelled"])
    assert jobs.get(row).cause == "cancelled"
    assert not jobs.cancel(row)


def test_a_cancel_request_that_nobody_announced_is_found_by_the_poll(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    with running(poll=0.1, **model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        cancel(database(live_database), [row.pk])
        assert scheduler.join(10)
    assert story_of(row) == Story("cancelled", ["cancelled"])


def test_cancel_with_running_false_leaves_a_running_job_alone(live_database: str, model: Model, tmp_path: Path) -> None:
    with running(**model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        assert not jobs.cancel(row, running=False)
        open_door(tmp_path)
        assert scheduler.join(30)
    assert story_of(row) == Story("completed", ["completed"], [], 1)


def test_a_job_cancelled_while_it_waits_for_its_retry_is_not_run_again(live_database: str, model: Model) -> None:
    row = model.steer.using(retry=RetryPolicy(max_retries=3, base_delay=3600, max_delay=3600)).enqueue("fail")
    with running(**model.slots) as scheduler:
        wait_until(lambda: jobs.get(row).status == "retry_wait")
        assert jobs.cancel(row)
        assert scheduler.join(30)
    assert story_of(row) == Story("cancelled", ["failed"], ["ValueError"])


def test_a_job_not_started_in_time_is_cancelled_as_expired(live_database: str, model: Model, tmp_path: Path) -> None:
    expires_at = timezone.now() + timedelta(seconds=0.05)
    row = model.steer.using(expires_at=expires_at).enqueue("complete", str(tmp_path))
    wait_until(lambda: timezone.now() > expires_at)
    with running(**model.slots) as scheduler:
        assert scheduler.join(30)
    assert (story_of(row), jobs.get(row).cause) == (Story("cancelled"), "expired")
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_expires_while_it_waits_for_a_slot_never_begins(live_database: str, tmp_path: Path) -> None:
    with running(threads=1, poll=0.05) as scheduler:
        first = steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, first)
        late = tasks.add.using(expires_at=timezone.now() + timedelta(seconds=0.2)).enqueue(1)
        wait_until(lambda: jobs.get(late).status == "cancelled", timeout=10)
        open_door(tmp_path)
        assert scheduler.join(30)
    assert story_of(late) == Story("cancelled")
    assert jobs.get(first).status == "completed"


MISBEHAVIOURS: dict[str, Story] = {
    "ok": Story("completed", ["completed"], [], "ok"),
    "exit": Story("failed", ["failed"] * 3, ["SystemExit"] * 3),
    "interrupt": Story("failed", ["failed"] * 3, ["KeyboardInterrupt"] * 3),
    "stop_iteration": Story("failed", ["failed"] * 3, ["StopIteration"] * 3),
    "base": Story("failed", ["failed"] * 3, ["BaseException"] * 3),
    "timeout_error": Story("failed", ["failed"] * 3, ["TimeoutError"] * 3),
    "cancelled_error": Story("failed", ["failed"] * 3, ["CancelledError"] * 3),
    "nul": Story("failed", ["failed"] * 3, ["ValueError"] * 3),
    "huge_message": Story("failed", ["failed"] * 3, ["ValueError"] * 3),
    "odd": Story("failed", ["failed"] * 3, ["Odd"] * 3),
    "mute": Story("failed", ["failed"] * 3, ["Mute"] * 3),
    # The work is done: running it again would not make its result storable.
    "huge_result": Story("failed", ["failed"], ["ResultNotStorable"]),
    "nul_result": Story("failed", ["failed"], ["ResultNotStorable"]),
    "surrogate_result": Story("failed", ["failed"], ["ResultNotStorable"]),
    "nan_result": Story("failed", ["failed"], ["ResultNotStorable"]),
    "lambda_result": Story("failed", ["failed"], ["ResultNotStorable"]),
}
MISBEHAVING = {
    Execution.THREAD: tasks.misbehave,
    Execution.ASYNC: tasks.amisbehave,
    Execution.PROCESS: tasks.pmisbehave,
}


def test_whatever_a_body_raises_or_returns_is_one_outcome_and_neighbours_go_on(
    live_database: str, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    task = MISBEHAVING[model.execution]
    rows = {how: task.enqueue(how) for how in MISBEHAVIOURS}
    neighbours = [model.steer.enqueue("complete") for _ in range(5)]
    with running(**model.slots) as scheduler:
        assert scheduler.join(60)
        after = task.enqueue("ok")
        assert scheduler.join(30)
        assert scheduler.dead_loops == []
    expected = dict(MISBEHAVIOURS)
    if model.execution is Execution.ASYNC:
        # Python's own doing: a coroutine cannot raise StopIteration.
        expected["stop_iteration"] = replace(expected["stop_iteration"], exceptions=["RuntimeError"] * 3)
    assert {how: story_of(row) for how, row in rows.items()} == expected
    assert [story_of(row).status for row in (*neighbours, after)] == ["completed"] * 6
    assert failure_of(jobs.get(rows["nul"])).message.startswith("a")
    assert len(failure_of(jobs.get(rows["huge_message"])).message) < 100_000
    assert len(caplog.text) < 500_000
    for how in ("nan_result", "lambda_result", "nul_result", "huge_result"):
        assert "result" in failure_of(jobs.get(rows[how])).message
    assert_sound(live_database)


WITHIN_A_LIMIT = {
    "timeout_error": ("builtins.TimeoutError", "upstream"),
    "future_cancelled": ("concurrent.futures._base.CancelledError", "own"),
    "exit_3": ("builtins.SystemExit", "3"),
    "locked": ("builtins.ValueError", "holds a lock"),
    "local": ("tests.support.tasks._misbehave.<locals>.Local", "no module has this class"),
}


def test_a_job_with_a_limit_that_raises_what_looks_like_one_fails_at_once(live_database: str, model: Model) -> None:
    """Who decides why a run ended is who fired: nobody fired here."""
    task = MISBEHAVING[model.execution].using(timeout=60, retry=0)
    rows = {how: task.enqueue(how) for how in WITHIN_A_LIMIT}
    with running(**model.slots) as scheduler:
        assert scheduler.join(30)
        after = task.enqueue("ok")
        assert scheduler.join(30)
        assert scheduler.dead_loops == []
    found = {how: failure_of(jobs.get(row)) for how, row in rows.items()}
    assert {how: (failure.exception_class, failure.message) for how, failure in found.items()} == WITHIN_A_LIMIT
    assert {(story_of(row).status, *story_of(row).outcomes) for row in rows.values()} == {("failed", "failed")}
    assert story_of(after).status == "completed"


def test_what_a_process_job_started_is_gone_after_its_timeout(live_database: str, tmp_path: Path) -> None:
    row = tasks.start_grandchild.using(timeout=1.0).enqueue(str(tmp_path))
    with running(processes=1, cancel_grace=0.5) as scheduler:
        assert scheduler.join(30)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 2
        wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), timeout=10)
    assert story_of(row) == Story("timed_out", ["timed_out"], ["TimedOut"])


def test_a_process_job_that_clings_is_killed_after_the_cancel_grace(live_database: str, tmp_path: Path) -> None:
    with running(processes=1, cancel_grace=0.3) as scheduler:
        timed_out = psteer.using(timeout=0.3).enqueue("cling", str(tmp_path))
        assert scheduler.join(30)
        cancelled = psteer.enqueue("cling", str(tmp_path))
        wait_for_begin(tmp_path, cancelled)
        assert jobs.cancel(cancelled)
        assert scheduler.join(30)
    assert story_of(timed_out) == Story("timed_out", ["timed_out"], ["TimedOut"])
    assert story_of(cancelled) == Story("cancelled", ["cancelled"])


@pytest.mark.parametrize("how", ["fail_twice", "snooze_once"])
def test_a_job_that_goes_back_is_started_when_due_and_not_at_the_next_poll(
    live_database: str, model: Model, how: str
) -> None:
    row = model.steer.using(retry=RETRIES).enqueue(how)
    with running(poll=30.0, **model.slots) as scheduler:
        assert scheduler.join(10)
    assert jobs.get(row).status == "completed"
