"""A caller who holds a job's row in an open transaction delays that job, and nothing else (PostgreSQL)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from django.db import connections, transaction

import jobs
from jobs import Status
from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.models import Job
from jobs.store.claim import Owner, claim
from jobs.store.database import database
from jobs.store.extend import begin
from jobs.store.pick import Lane
from tests.support import tasks
from tests.support.engine import running
from tests.support.waiting import wait_until

DEAD = Owner(uuid4(), "dead")

pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


@contextmanager
def held(alias: str, *rows: Job) -> Iterator[None]:
    """Another connection has locked these rows; its transaction ends with the block."""
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic(using=alias):
                ids = [row.pk for row in rows]
                list(Job.objects.using(alias).select_for_update().filter(pk__in=ids).order_by("pk"))
                locked.set()
                release.wait(60)
        finally:
            connections[alias].close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert locked.wait(10)
        yield
    finally:
        release.set()
        thread.join(10)


def completed(*rows: Job) -> bool:
    return all(jobs.get(row).status == Status.COMPLETED for row in rows)


def test_a_held_waiting_row_delays_only_that_job(live_database: str) -> None:
    mine, later = tasks.add.enqueue(1), tasks.add.using(delay=0.1).enqueue(1)
    with held(live_database, mine, later), running():
        others = [tasks.add.enqueue(n) for n in range(20)] + [tasks.add.using(delay=0.2).enqueue(1)]
        wait_until(lambda: completed(*others), timeout=10, what="the others run")
        assert [jobs.get(row).status for row in (mine, later)] == [Status.PENDING, Status.SCHEDULED]
    with running() as scheduler:
        assert scheduler.join(20)
    assert completed(mine, later)


def test_a_row_that_is_released_runs_without_a_restart(live_database: str) -> None:
    mine = tasks.add.enqueue(1)
    with running():
        with held(live_database, mine):
            others = [tasks.add.enqueue(n) for n in range(5)]
            wait_until(lambda: completed(*others), timeout=10)
        wait_until(lambda: completed(mine), timeout=10)


def test_a_held_running_row_delays_only_its_own_outcome(live_database: str) -> None:
    with running(lease=60.0, renew=0.2) as scheduler:
        mine = tasks.wait_at_gate.enqueue("held-running")
        assert tasks.gate("held-running:in").wait(10)
        with held(live_database, mine):
            tasks.gate("held-running").set()
            wait_until(lambda: scheduler.in_flight.unfinished() == 0, timeout=10, what="its body has ended")
            others = [tasks.add.enqueue(n) for n in range(20)]
            wait_until(lambda: completed(*others), timeout=10, what="the others run, and are recorded")
            assert jobs.get(mine).status == Status.RUNNING
        wait_until(lambda: completed(mine), timeout=10, what="recorded after the release")
    assert jobs.get(mine).attempts == 1


def test_a_held_key_delays_only_who_submits_that_key(live_database: str) -> None:
    mine = tasks.add.using(unique_key="mine").enqueue(1)
    with held(live_database, mine), running():
        others = [tasks.add.using(unique_key=f"other-{n}").enqueue(n) for n in range(10)]
        wait_until(lambda: completed(*others), timeout=10, what="the others run")
        assert jobs.get(mine).status == Status.PENDING
        same: list[Job] = []
        thread = threading.Thread(target=_submit, args=(live_database, "mine", same))
        thread.start()
        tasks.add.using(unique_key="another").enqueue(1)
        assert same == []
    thread.join(20)
    assert [row.pk for row in same] == [mine.pk] or same[0].created


def test_a_held_row_of_a_lost_job_delays_no_other_reclaim(live_database: str) -> None:
    mine, other = tasks.add.enqueue(1), tasks.add.enqueue(2)
    assert len(claim_for_the_dead(live_database)) == 2
    with running(lease=2.0, renew=0.2, processes=1):
        with held(live_database, mine):
            wait_until(lambda: completed(other), timeout=20, what="the other is reclaimed, and run again")
            assert jobs.get(mine).status == Status.RUNNING
        wait_until(lambda: completed(mine), timeout=20)


def test_an_at_most_once_body_does_not_begin_while_its_row_is_held_and_nobody_waits(live_database: str) -> None:
    mine = tasks.add.using(at_most_once=True).enqueue(1)
    (claimed,) = claim_for_the_dead(live_database)
    db = database(live_database)
    with held(live_database, mine), transaction.atomic(using=live_database):
        db.execute("SET LOCAL lock_timeout = '2s'")
        assert not begin(db, DEAD.id, claimed.attempt_id)
    assert begin(db, DEAD.id, claimed.attempt_id)


def claim_for_the_dead(alias: str) -> list[Claim]:
    """Due thread jobs are claimed by a worker that does nothing more."""
    lanes, limits = [Lane("default", Execution.THREAD, 10)], {Execution.THREAD: (10, 0)}
    return claim(database(alias), DEAD, lanes, limits=limits, lease_seconds=0.5)


def _submit(alias: str, key: str, into: list[Job]) -> None:
    try:
        into.append(tasks.add.using(unique_key=key).enqueue(1))
    finally:
        connections[alias].close()
