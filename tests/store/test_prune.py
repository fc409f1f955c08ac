"""Retention: by status and end time, in short batches, never what somebody holds or what still lingers."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction

from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel
from jobs.store.database import database
from jobs.store.prune import prune
from tests.support.store import Bench

DAY = 86400
ENDS = [Status.COMPLETED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED]


def ended(bench: Bench, status: Status, **changes: object) -> int:
    job_id = bench.submit().job_id
    if status is Status.CANCELLED:
        cancel(bench.db, [job_id])
    else:
        (claimed,) = bench.claim()
        bench.close(claimed, status, **changes)
    return job_id


@pytest.mark.parametrize("status", ENDS)
def test_each_status_has_its_own_age(bench: Bench, status: Status) -> None:
    old = [ended(bench, one) for one in ENDS]
    bench.turn(3 * DAY)
    assert prune(bench.db, {status: timedelta(days=4)}) == 0
    assert prune(bench.db, {status: timedelta(days=2)}) == 1
    assert prune(bench.db, {status: timedelta(days=2)}) == 0
    left = set(Job.objects.using(bench.alias).values_list("id", flat=True))
    assert left == set(old) - {old[ENDS.index(status)]}


def test_a_waiting_or_running_job_is_never_pruned(bench: Bench) -> None:
    bench.submit()
    bench.claim()
    bench.submit(delay_seconds=DAY)
    bench.turn(100 * DAY)
    assert prune(bench.db, dict.fromkeys(ENDS, timedelta(0)), history_limit=1) == 0


def test_one_call_deletes_at_most_one_batch_oldest_first(bench: Bench) -> None:
    ids = []
    for _ in range(5):
        ids.append(ended(bench, Status.COMPLETED))
        bench.turn(1)
    bench.turn(DAY)
    keep = {Status.COMPLETED: timedelta(0)}
    assert [prune(bench.db, keep, batch=2) for _ in range(2)] == [2, 2]
    assert list(Job.objects.using(bench.alias).values_list("id", flat=True)) == ids[-1:]


def test_a_job_whose_call_still_lingers_stays(bench: Bench) -> None:
    job_id = ended(bench, Status.TIMED_OUT, outcome=AttemptOutcome.TIMED_OUT, lingers=True)
    bench.turn(30)
    assert prune(bench.db, {Status.TIMED_OUT: timedelta(0)}) == 0
    bench.turn(31)
    assert prune(bench.db, {Status.TIMED_OUT: timedelta(0)}) == 1
    assert not Attempt.objects.using(bench.alias).filter(job_id=job_id).exists()


def test_a_row_that_somebody_holds_is_skipped(live_bench: Bench) -> None:
    bench = live_bench
    if connections[bench.alias].vendor != "postgresql":
        pytest.skip("SQLite has one writer: whoever holds a row holds the database")
    held, free = ended(bench, Status.COMPLETED), ended(bench, Status.COMPLETED)
    bench.turn(DAY)
    pruned: list[int] = []

    def prune_elsewhere() -> None:
        pruned.append(prune(database(bench.alias, bench.now), {Status.COMPLETED: timedelta(0)}))
        connections.close_all()

    with transaction.atomic(using=bench.alias):
        Job.objects.using(bench.alias).select_for_update().get(pk=held)
        thread = threading.Thread(target=prune_elsewhere)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert pruned == [1]
    assert list(Job.objects.using(bench.alias).values_list("id", flat=True)) == [held]
    assert free != held
