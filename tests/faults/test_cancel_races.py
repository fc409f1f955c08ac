"""Cancels that meet claims, starts and ends at random instants: one end each, and no second run after a cancel."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

import jobs
from jobs import RetryPolicy
from jobs.domain.move import Move, listeners
from jobs.domain.outcome import Failure
from jobs.domain.status import LEGAL_MOVES, TERMINAL, Status
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel
from jobs.store.database import Database, Rows, database
from jobs.store.requeue import requeue
from jobs.store.verify import verify
from tests.support import tasks
from tests.support.engine import running
from tests.support.store import Bench

BOOM = Failure("builtins.ValueError", "boom", "Traceback")
EAGER = RetryPolicy(max_retries=100, base_delay=0, jitter=False)
"""A job that fails goes round and round between RUNNING and RETRY_WAIT."""
HOW = ("ok", "value_error", "value_error")
LEGAL = {(None, Status.PENDING), *((old, new) for old, new_ones in LEGAL_MOVES.items() for new in new_ones)}


@contextmanager
def hearing() -> Iterator[list[Move]]:
    """Every move that this process makes."""
    heard: list[Move] = []
    listeners.add(heard.append)
    try:
        yield heard
    finally:
        listeners.remove(heard.append)


def cancel_at_random(alias: str, count: int, rng: random.Random, *, processes: int = 0) -> None:
    calls = [tasks.misbehave, tasks.amisbehave] + [tasks.pmisbehave] * bool(processes)
    asked: set[int] = set()
    with hearing() as moves, running(lease=60.0, processes=processes, claim_ahead=0.05) as scheduler:
        for start in range(0, count, 50):
            rows = jobs.enqueue_many(
                [
                    tasks.sleep_on_loop.bind(0.05)  # long enough to be stopped in its body
                    if number % 7 == 0
                    else calls[number % len(calls)].using(retry=EAGER).bind(rng.choice(HOW))
                    for number in range(min(50, count - start))
                ]
            )
            for row in rng.sample(rows, len(rows)):
                threading.Event().wait(rng.uniform(0, 0.004))
                if jobs.cancel(row):
                    asked.add(row.pk)
        assert scheduler.join(60), Counter(job.status for job in Job.objects.using(alias))
    assert {(move.old, move.new) for move in moves} <= LEGAL
    ends = Counter(move.job_id for move in moves if move.new in TERMINAL)
    assert set(ends.values()) == {1} and len(ends) == count
    stored = Job.objects.using(alias)
    assert stored.exclude(status__in=[status.value for status in TERMINAL]).count() == 0
    by_status = Counter(stored.values_list("status", flat=True))
    assert by_status["cancelled"] > count // 10, by_status
    assert set(stored.filter(status="cancelled").values_list("pk", flat=True)) <= asked
    for one in stored.filter(pk__in=asked, cancel_requested_at__isnull=False).prefetch_related("runs"):
        starts = [run.claimed_at for run in one.runs.all() if run.claimed_at > one.cancel_requested_at]
        assert starts == [], f"job {one.pk} was claimed after its cancel"
    outcomes = Counter(Attempt.objects.using(alias).values_list("outcome", flat=True))
    assert outcomes["cancelled"] and not outcomes["running"], outcomes
    assert list(verify(database(alias), overdue_seconds=0.0)) == []


def test_a_hundred_and_fifty_cancels_around_claim_and_end_leave_one_end_each(live_database: str) -> None:
    cancel_at_random(live_database, 150, random.Random(5))


@pytest.mark.slow
def test_a_thousand_cancels_in_every_model_leave_one_end_each(live_database: str) -> None:
    cancel_at_random(live_database, 1000, random.Random(), processes=2)


# -- the same race, statement by statement


def meddled(db: Database, meddle: Callable[[], object]) -> Database:
    """The same database, where `meddle` commits on another connection right after the verb's first statement."""
    kind = type(db)
    left = [meddle]

    class Meddled(kind):  # type: ignore[valid-type, misc]
        def rows(self, sql: str, **parameters: Any) -> Rows:
            found: Rows = kind.rows(self, sql, **parameters)
            if left:
                elsewhere(left.pop())
            return found

    return Meddled(db.alias, db.instant)


def elsewhere(act: Callable[[], object]) -> None:
    def run() -> None:
        try:
            act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result(20)


@pytest.fixture
def moves() -> Iterator[list[Move]]:
    with hearing() as heard:
        yield heard


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_requeue_that_meets_a_failure_moves_the_job_or_leaves_it_and_reports_what_it_did(
    live_database: str, moves: list[Move]
) -> None:
    bench = Bench(live_database)
    row = bench.submit()
    (claimed,) = bench.claim()
    moves.clear()
    requeued = requeue(meddled(bench.db, lambda: bench.close(claimed, Status.FAILED, failure=BOOM)), [row.job_id])
    assert (requeued.moved, bench.status(row.job_id)) == ({}, "failed")
    assert [move.new for move in moves] == [Status.FAILED]


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_cancel_that_meets_a_requeue_reports_every_move_it_makes(live_database: str, moves: list[Move]) -> None:
    bench = Bench(live_database)
    row = bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.FAILED, failure=BOOM)
    moves.clear()
    accepted = cancel(meddled(bench.db, lambda: requeue(bench.db, [row.job_id])), [row.job_id])
    assert (accepted, bench.status(row.job_id)) == ({}, "pending")
    assert [move.new for move in moves] == [Status.PENDING]
