"""A job that moves between a verb's lock and its write is left alone, not moved without a word."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from jobs.domain.move import Move, listeners
from jobs.domain.status import Status
from jobs.store.cancel import cancel
from jobs.store.database import PostgreSQL
from jobs.store.requeue import requeue
from tests.support.store import Bench

# SQLite has one writer: nothing moves in between.
pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


def once_after_the_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Let another session act, and commit, after the next locking SELECT."""
    original = PostgreSQL.rows

    def act_and_close() -> None:
        try:
            act()
        finally:
            connections.close_all()

    def rows(self: PostgreSQL, sql: str, **parameters: Any) -> Any:
        found = original(self, sql, **parameters)
        if "SELECT" in sql and "FOR NO KEY UPDATE" in sql:
            monkeypatch.setattr(PostgreSQL, "rows", original)
            other = threading.Thread(target=act_and_close)
            other.start()
            other.join(10)
            assert not other.is_alive()
        return found

    monkeypatch.setattr(PostgreSQL, "rows", rows)


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[Move]:
    heard: list[Move] = []
    monkeypatch.setattr(listeners, "_listeners", ((heard.append, lambda: True),))
    return heard


def test_a_requeue_that_finds_its_job_unfinished_does_nothing(
    live_bench: Bench, moves: list[Move], monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = live_bench.submit().job_id
    moves.clear()
    once_after_the_lock(monkeypatch, lambda: cancel(live_bench.db, [job_id]))
    assert requeue(live_bench.db, [job_id]).moved == {}
    assert [move.new for move in moves] == [Status.CANCELLED]
    assert requeue(live_bench.db, [job_id]).moved == {job_id: Status.PENDING}


def test_a_cancel_that_finds_its_job_ended_does_nothing(
    live_bench: Bench, moves: list[Move], monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = live_bench.submit().job_id
    cancel(live_bench.db, [job_id])
    moves.clear()
    once_after_the_lock(monkeypatch, lambda: requeue(live_bench.db, [job_id]))
    assert cancel(live_bench.db, [job_id]) == {}
    assert [move.new for move in moves] == [Status.PENDING]
    assert live_bench.status(job_id) == Status.PENDING
