"""Leases are renewed before anybody has looked twice, and a look that was held up is none."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

import jobs
from jobs.engine import housekeeper
from jobs.engine.housekeeper import Housekeeper, TwoLooks
from jobs.engine.options import EngineOptions
from jobs.models import Attempt
from jobs.store.database import Database
from tests.support import tasks
from tests.support.engine import running
from tests.support.waiting import wait_until

UNTIL = datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc)


def test_two_looks_far_enough_apart_at_an_unchanged_lease_confirm_a_loss() -> None:
    looks = TwoLooks(10.0)
    assert looks.look({1: UNTIL, 2: UNTIL}, 0.0) == {}
    assert looks.look({1: UNTIL, 2: UNTIL + timedelta(seconds=1)}, 9.9) == {}
    assert looks.look({1: UNTIL, 2: UNTIL + timedelta(seconds=1)}, 10.0) == {1: UNTIL}


def test_an_error_between_two_looks_makes_the_second_a_first_one() -> None:
    looks = TwoLooks(10.0)
    looks.look({1: UNTIL}, 0.0)
    looks.forget()
    assert looks.look({1: UNTIL}, 10.0) == {}
    assert looks.look({1: UNTIL}, 20.0) == {1: UNTIL}


@pytest.mark.parametrize(("held_up", "reclaimed"), [(0.1, [1]), (30.0, [])])
def test_a_look_that_the_database_held_up_does_not_count(
    monkeypatch: pytest.MonkeyPatch, held_up: float, reclaimed: list[int]
) -> None:
    """Whoever renews was held up as long, and must have the chance to be first now."""
    clock = SimpleNamespace(now=0.0, answers_after=0.1)
    taken: list[int] = []

    def overdue(db: Database) -> dict[int, datetime]:
        clock.now += clock.answers_after
        return {1: UNTIL}

    def reclaim(db: Database, seen: dict[int, datetime], *, actor: str) -> list[int]:
        taken.extend(seen)
        return []

    monkeypatch.setattr(housekeeper, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(housekeeper, "overdue", overdue)
    monkeypatch.setattr(housekeeper, "reclaim", reclaim)
    sweeper = Housekeeper(EngineOptions(renew=20.0), prepare=lambda: None)
    sweeper._sweep(Database("default"))
    clock.now, clock.answers_after = 21.0, held_up
    sweeper._sweep(Database("default"))
    assert taken == reclaimed


def test_a_lease_is_renewed_well_within_the_renewal_interval(live_database: str) -> None:
    """A sweeper's two looks are one interval apart: there must be a renewal between them."""
    with running(lease=10.0, renew=1.0):
        row = tasks.wait_at_gate.enqueue(f"renewed {live_database}")
        assert tasks.gate(f"renewed {live_database}:in").wait(10)
        attempt = Attempt.objects.using(live_database).filter(job_id=row.pk)
        ends = [attempt.get().lease_until]
        wait_until(lambda: _note_new(attempt.get().lease_until, ends) == 3, what="two renewals")
        tasks.gate(f"renewed {live_database}").set()
        wait_until(lambda: jobs.get(row).is_finished)
    assert ends[2] - ends[1] < timedelta(seconds=1.0)


def _note_new(end: datetime, ends: list[datetime]) -> int:
    if end != ends[-1]:
        ends.append(end)
    return len(ends)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_the_engine_gives_a_server_that_is_gone_up_before_its_leases_are_over(
    live_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    real = DatabaseWrapper.get_connection_params

    def parameters(self: DatabaseWrapper) -> dict[str, Any]:
        given = real(self)
        if "tcp_user_timeout" in given:
            seen.append(given)
        return {**given}

    monkeypatch.setattr(DatabaseWrapper, "get_connection_params", parameters)
    with running(lease=60.0, renew=20.0) as engine:
        tasks.add.enqueue(1)
        assert engine.join(20)
    assert len(seen) >= 4
    for one in seen:
        assert (one["tcp_user_timeout"], one["connect_timeout"]) == (5000, 5)
        assert one["keepalives_idle"] + one["keepalives_count"] * one["keepalives_interval"] < 20
