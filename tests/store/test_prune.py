"""Retention: by status and end time, in short batches, never what somebody holds or what still lingers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections, transaction

from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Job, Occurrence, Schedule
from jobs.store.cancel import cancel
from jobs.store.prune import OCCURRENCES_KEPT, prune, prune_occurrences
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


def occurrences(bench: Bench, name: str, count: int) -> Schedule:
    schedule = Schedule(name=name, task="tests.work", interval_seconds=60)
    schedule.save(using=bench.alias)
    Occurrence.objects.using(bench.alias).bulk_create(
        # The newest first, so that the order of ids tells nothing.
        Occurrence(schedule=schedule, planned_at=bench.now - timedelta(minutes=age), outcome="skipped")
        for age in range(count)
    )
    return schedule


def test_the_newest_occurrences_of_each_schedule_stay(bench: Bench) -> None:
    much, enough = occurrences(bench, "much", OCCURRENCES_KEPT + 5), occurrences(bench, "enough", OCCURRENCES_KEPT)
    assert [prune_occurrences(bench.db, batch=3) for _ in range(3)] == [3, 2, 0]
    rows = Occurrence.objects.using(bench.alias)
    assert rows.filter(schedule=enough).count() == OCCURRENCES_KEPT
    left = set(rows.filter(schedule=much).values_list("planned_at", flat=True))
    assert left == {bench.now - timedelta(minutes=age) for age in range(OCCURRENCES_KEPT)}


def test_an_occurrence_that_somebody_holds_is_skipped(live_bench: Bench) -> None:
    bench = live_bench
    if connections[bench.alias].vendor != "postgresql":
        pytest.skip("SQLite has one writer: whoever holds a row holds the database")
    occurrences(bench, "s", 3)
    oldest = Occurrence.objects.using(bench.alias).order_by("planned_at")[0]
    with transaction.atomic(using=bench.alias):
        Occurrence.objects.using(bench.alias).select_for_update().get(pk=oldest.pk)
        pruned = elsewhere(bench.alias, lambda: prune_occurrences(bench.db, kept=1))
    assert pruned == 1
    assert prune_occurrences(bench.db, kept=1) == 1


def elsewhere(alias: str, prune_some: Callable[[], int]) -> int:
    """What it gives in a thread of its own, by a connection of its own."""
    pruned: list[int] = []

    def work() -> None:
        pruned.append(prune_some())
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    return pruned[0]


def test_a_row_that_somebody_holds_is_skipped(live_bench: Bench) -> None:
    bench = live_bench
    if connections[bench.alias].vendor != "postgresql":
        pytest.skip("SQLite has one writer: whoever holds a row holds the database")
    held, free = ended(bench, Status.COMPLETED), ended(bench, Status.COMPLETED)
    bench.turn(DAY)
    with transaction.atomic(using=bench.alias):
        Job.objects.using(bench.alias).select_for_update().get(pk=held)
        pruned = elsewhere(bench.alias, lambda: prune(bench.db, {Status.COMPLETED: timedelta(0)}))
    assert pruned == 1
    assert list(Job.objects.using(bench.alias).values_list("id", flat=True)) == [held]
    assert free != held
