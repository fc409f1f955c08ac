"""Instants that SQL computes agree with those that Python writes, to the microsecond."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.store.database import database as store_database

NOON = datetime(2027, 3, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("now", [NOON, NOON + timedelta(microseconds=123_789), NOON + timedelta(microseconds=999_999)])
@pytest.mark.parametrize("seconds", [0, 1, 0.000001, 59.999999, -3600.5, 366 * 86400.0])
def test_an_instant_some_seconds_later_is_exact(database: str, now: datetime, seconds: float) -> None:
    db = store_database(database, now)
    later = db.read_instant(db.rows(f"SELECT {db.later('%(seconds)s')}", seconds=seconds)[0][0])
    assert later == now + timedelta(seconds=seconds)


def test_what_is_due_after_no_time_is_due_now(database: str) -> None:
    db = store_database(database, NOON + timedelta(microseconds=600))
    assert db.rows(f"SELECT {db.later('0')} <= {db.now}") == [(True,)]
