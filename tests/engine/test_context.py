"""What a running job may ask and say: identity, stop requests, progress, log."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs import Execution
from jobs.domain.text import clean_text
from jobs.engine import body, lease_keeper
from jobs.engine.log_capture import LogBuffer
from jobs.models import Attempt, Job
from jobs.store.extend import note_progress
from jobs.testing import run_jobs
from tests.support import talking
from tests.support.engine import running
from tests.support.steered import open_door, wait_for_begin
from tests.support.story import Story, attempts_of, failure_of, story_of
from tests.support.waiting import wait_until

EXECUTIONS = ["thread", "async", "process"]


def every(*names: str) -> pytest.MarkDecorator:
    """The same task in each execution."""
    return pytest.mark.parametrize("task", [getattr(talking, name) for name in names], ids=EXECUTIONS)


def slots_for(task: Any) -> dict[str, int]:
    return {"processes": 1} if task.definition.options.execution is Execution.PROCESS else {}


def first_attempt(row: Job) -> Attempt:
    return attempts_of(jobs.get(row))[0]


def lines_of(attempt: Attempt) -> list[tuple[str, str, str]]:
    return [(level, name, message) for _, level, name, message in attempt.captured_log.lines]


@every("talk", "atalk", "ptalk")
def test_a_job_knows_itself_and_its_log_is_kept_with_each_attempt(live_database: str, task: Any) -> None:
    row = task.enqueue()
    with running(**slots_for(task)) as scheduler:
        assert scheduler.join(30)
    first, second = attempts_of(jobs.get(row))
    assert jobs.get(row).result == {"job_id": row.pk, "attempt": 2, "fence": second.pk, "cancelled": False}
    said = [
        ("INFO", "jobs.task", "working on it"),
        ("WARNING", "jobs.task", "careful"),
        ("WARNING", "shop.orders", "stock is low: 3"),
        ("ERROR", "shop.orders", clean_text("with NUL \0 and surrogate \ud800", 2000)),
    ]
    assert lines_of(first) == said
    assert lines_of(second) == [*said, ("INFO", "jobs.task", "again")]
    assert all(0 <= seconds < 30 for seconds, *_ in first.captured_log.lines)


@every("chatter", "achatter", "pchatter")
def test_a_talkative_job_keeps_the_first_and_the_last_lines(live_database: str, task: Any) -> None:
    row = task.enqueue()
    with running(**slots_for(task)) as scheduler:
        assert scheduler.join(30)
    messages = [message for _, _, message in lines_of(first_attempt(row))]
    assert len(messages) == 201
    assert messages[0].startswith("line 0 ") and messages[99].startswith("line 99 ")
    assert "800 lines left out" in messages[100]
    assert messages[-1].startswith("line 999 ")
    assert max(map(len, messages)) <= 2000


@every("measure", "ameasure", "pmeasure")
def test_progress_is_seen_while_the_job_runs(live_database: str, tmp_path: Path, task: Any) -> None:
    with running(**slots_for(task)) as scheduler:
        row = task.enqueue(str(tmp_path))
        wait_for_begin(tmp_path, row)
        wait_until(lambda: first_attempt(row).progress_done == 1000, timeout=10)
        attempt = first_attempt(row)
        assert (attempt.progress_total, attempt.progress_message, attempt.outcome) == (1000, "row 1000", "running")
        open_door(tmp_path)
        assert scheduler.join(30)


@every("measure", "ameasure", "pmeasure")
def test_the_last_progress_stays_with_the_attempt_however_soon_it_ends(
    live_database: str, tmp_path: Path, task: Any
) -> None:
    open_door(tmp_path)
    row = task.enqueue(str(tmp_path))
    with running(**slots_for(task)) as scheduler:
        assert scheduler.join(30)
    attempt = first_attempt(row)
    assert (attempt.outcome, attempt.progress_done, attempt.progress_message) == ("completed", 1000, "row 1000")


def test_strange_progress_is_cleaned_or_refused_and_hurts_nobody(live_database: str, tmp_path: Path) -> None:
    with running() as scheduler:
        strange = talking.report.enqueue("1", None, r"a\x00b \ud800 " + "x" * 500, str(tmp_path))
        wait_for_begin(tmp_path, strange)
        wait_until(lambda: first_attempt(strange).progress_done == 1, timeout=10)
        refused = [
            talking.report.enqueue("nan", "1", "", str(tmp_path)),
            talking.report.enqueue("1", "inf", "", str(tmp_path)),
        ]
        open_door(tmp_path)
        assert scheduler.join(10)
    assert first_attempt(strange).progress_message.startswith("a\\u0000b \\ud800 x")
    assert len(first_attempt(strange).progress_message) <= 200
    assert story_of(strange) == Story("completed", ["completed"])
    assert [story_of(row) for row in refused] == [Story("failed", ["failed"], ["InvalidOption"])] * 2


def test_a_thousand_reports_of_progress_cost_few_writes(
    live_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []

    def write(*given: Any) -> int:
        written.append(given)
        return note_progress(*given)

    monkeypatch.setattr(lease_keeper, "note_progress", write)
    with running() as scheduler:
        row = talking.measure.enqueue(str(tmp_path))
        wait_for_begin(tmp_path, row)
        wait_until(lambda: first_attempt(row).progress_done == 1000, timeout=10)
        open_door(tmp_path)
        assert scheduler.join(10)
    assert 1 <= len(written) <= 5


@every("notice", "anotice", "pnotice")
def test_a_job_is_told_to_stop_by_a_cancel_and_by_its_timeout(live_database: str, tmp_path: Path, task: Any) -> None:
    with running(**dict.fromkeys(slots_for(task), 2)) as scheduler:
        cancelled = task.enqueue(str(tmp_path))
        # Long enough for the body to have reached its first line, on a busy machine too.
        timed_out = task.using(timeout=2.0).enqueue(str(tmp_path))
        wait_for_begin(tmp_path, cancelled)
        assert jobs.cancel(cancelled)
        assert scheduler.join(30)
        wait_until(lambda: (tmp_path / f"{timed_out.pk}-noticed").exists(), timeout=10)
    assert (story_of(cancelled).status, story_of(timed_out).status) == ("cancelled", "timed_out")
    assert {(tmp_path / f"{row.pk}-noticed").read_text() for row in (cancelled, timed_out)} == {"True"}


def test_a_thread_of_the_job_may_use_its_context(live_database: str) -> None:
    row = talking.ask_from_a_thread.enqueue()
    with running() as scheduler:
        assert scheduler.join(10)
    assert jobs.get(row).result == {
        "job_id": row.pk,
        "attempt": 1,
        "fence": first_attempt(row).pk,
        "cancelled": False,
    }


def test_a_fence_grows_with_every_attempt_of_every_job(live_database: str) -> None:
    rows = [talking.talk.enqueue() for _ in range(3)]
    with running() as scheduler:
        assert scheduler.join(10)
        rows.append(talking.talk.enqueue())
        assert scheduler.join(10)
    fences = [[attempt.pk for attempt in attempts_of(jobs.get(row))] for row in rows]
    assert all(first < second for first, second in fences)
    assert fences[-1][0] > max(fence for pair in fences[:-1] for fence in pair)


def test_a_job_that_snoozes_without_end_fails_at_last(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_SNOOZES", 3)
    row = talking.doze.enqueue()
    run_jobs()
    job = jobs.get(row)
    assert story_of(row) == Story("failed", ["interrupted"] * 3 + ["failed"], ["SnoozedTooOften"])
    assert (job.snoozes, job.failures) == (3, 1)
    assert "snoozed 3 times" in failure_of(job).message


def test_a_line_whose_arguments_do_not_fit_is_kept_unformatted() -> None:
    buffer = LogBuffer()
    buffer.add(logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": "too few: %d %d", "args": (1,)}))
    assert [line.message for line in buffer.lines()] == ["'too few: %d %d' (not formatted: TypeError)"]
