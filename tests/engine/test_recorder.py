"""Outcomes that the database will not take hurt only themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import DataError, OperationalError

import jobs
from jobs.domain.closing import Closing
from jobs.engine import recorder
from jobs.store.record import record
from tests.support import tasks
from tests.support.engine import running
from tests.support.story import Story, failure_of, story_of
from tests.support.waiting import wait_until

POISON = "666"


def refuse_poison(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    write = record

    def picky(db: Any, worker_id: Any, closings: Sequence[Closing], **given: Any) -> Any:
        if any(one.result == POISON for one in closings):
            raise error
        return write(db, worker_id, closings, **given)

    monkeypatch.setattr(recorder, "record", picky)


def test_an_outcome_that_cannot_be_stored_is_recorded_without_its_details(
    live_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_poison(monkeypatch, DataError("invalid byte sequence"))
    rows = [tasks.add.enqueue(number) for number in range(20)]
    bad = tasks.add.enqueue(666)
    rows += [tasks.add.enqueue(number) for number in range(20)]
    with running() as scheduler:
        assert scheduler.join(15)
    assert {jobs.get(row).status for row in rows} == {"completed"}
    assert story_of(bad) == Story("failed", ["failed"], ["OutcomeNotStorable"])
    assert "invalid byte sequence" in failure_of(jobs.get(bad)).message


def test_an_outcome_that_fails_like_an_outage_does_not_keep_the_others_from_being_recorded(
    live_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite calls a parameter it cannot read an operational error."""
    refuse_poison(monkeypatch, OperationalError("malformed JSON"))
    with running() as scheduler:
        bad = tasks.add.enqueue(666)
        wait_until(lambda: scheduler._recorder.loop.errors > 0, timeout=10)
        rows = [tasks.add.enqueue(number) for number in range(20)]
        wait_until(lambda: {jobs.get(row).status for row in rows} == {"completed"}, timeout=30)
        assert jobs.get(bad).status == "running"
        monkeypatch.undo()
        assert scheduler.join(30)
    assert story_of(bad) == Story("completed", ["completed"], [], 666)
