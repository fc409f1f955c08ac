"""What the engine logs when the database is away: what is to be expected, and no traceback."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db import OperationalError, connections

from jobs.engine.hints import hint_due
from jobs.models import Worker
from jobs.store.database import PostgreSQL, database
from tests.support.engine import running
from tests.support.waiting import wait_until


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_hint_that_was_not_sent_is_one_line(
    live_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any, **parameters: Any) -> None:
        raise OperationalError("connection failed: refused\n\tIs the server running?")

    db = database(live_database)
    with monkeypatch.context() as patched, caplog.at_level(logging.INFO):
        patched.setattr(PostgreSQL, "rows", fail)
        hint_due(db)
    assert "a wake-up hint was not sent; the poll will find the job: connection failed: refused" in caplog.messages
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_cut_listening_connection_is_one_line(live_database: str, caplog: pytest.LogCaptureFixture) -> None:
    with running():
        wait_until(lambda: Worker.objects.using(live_database).filter(asleep=True).exists(), what="it sleeps")
        for _ in range(5):
            caplog.clear()
            with connections[live_database].cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
                )
            wait_until(lambda: "waker:" in caplog.text, what="it is noticed")
            assert not any(record.exc_info for record in caplog.records)
            wait_until(lambda: _listens(live_database), what="it listens again")


def _listens(alias: str) -> bool:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
        return cursor.fetchone() is not None
