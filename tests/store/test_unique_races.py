"""Many submits of one unique key at the same instant: one job, and everybody else is told which."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import transaction

import jobs
from jobs import Status
from jobs.domain.execution import Execution
from jobs.models import Job
from jobs.store.claim import Owner, claim
from jobs.store.database import database
from jobs.store.pick import Lane
from tests.support import tasks
from tests.support.at_once import at_once
from tests.support.models import Effect

THREADS = 20


def test_of_twenty_submits_of_one_key_at_once_one_makes_the_job(live_database: str) -> None:
    rows = at_once(live_database, lambda n: tasks.add.using(unique_key="k").enqueue(n))
    assert all(isinstance(row, Job) for row in rows), rows
    assert len({row.pk for row in rows}) == 1
    assert sorted(row.created for row in rows) == [False] * (THREADS - 1) + [True]
    assert Job.objects.using(live_database).count() == 1


def test_the_same_inside_transactions_that_stay_usable(live_database: str) -> None:
    def submit(number: int) -> Job:
        with transaction.atomic(using=live_database):
            Effect.objects.using(live_database).create(label="before")
            row = tasks.add.using(unique_key="k").enqueue(number)
            Effect.objects.using(live_database).create(label="after")
        return row

    rows = at_once(live_database, submit)
    assert all(isinstance(row, Job) for row in rows), rows
    assert sorted(row.created for row in rows) == [False] * (THREADS - 1) + [True]
    assert Job.objects.using(live_database).count() == 1
    assert Effect.objects.using(live_database).filter(label="after").count() == THREADS


def test_when_the_first_rolls_back_one_of_the_waiting_makes_the_job(live_database: str) -> None:
    def submit(number: int) -> Job | None:
        try:
            with transaction.atomic(using=live_database):
                row = tasks.add.using(unique_key="k").enqueue(number)
                if row.created and number % 2:
                    raise ZeroDivisionError
                return row
        except ZeroDivisionError:
            return None

    rows = [row for row in at_once(live_database, submit) if row is not None]
    assert all(isinstance(row, Job) for row in rows), rows
    stored = list(Job.objects.using(live_database).values_list("pk", flat=True))
    assert len(stored) == 1
    # Whoever was told of a job that was then rolled back would wait for ever.
    assert {row.pk for row in rows} == set(stored)
    assert sum(row.created for row in rows) == 1


def test_batches_with_the_same_keys_in_other_orders_meet_without_a_deadlock(live_database: str) -> None:
    keys = [f"k{number}" for number in range(500)]

    calls = [tasks.add.using(unique_key=key).bind(1) for key in keys]
    orders = [calls, calls[::-1]]

    def submit(number: int) -> list[Job]:
        return jobs.enqueue_many(orders[number % 2])

    batches = at_once(live_database, submit, threads=4)
    assert all(isinstance(batch, list) for batch in batches), batches
    assert Job.objects.using(live_database).count() == len(keys)
    assert sum(row.created for batch in batches for row in batch) == len(keys)


def test_a_key_is_taken_over_and_over_while_its_holders_end(live_database: str) -> None:
    """Insert-or-find loops when the holder ended between the two."""

    def work(number: int) -> int:
        made = 0
        for _ in range(10):
            row = tasks.add.using(unique_key="k").enqueue(number)
            made += row.created
            jobs.cancel(row)
        return made

    made = at_once(live_database, work, threads=8)
    assert all(isinstance(one, int) for one in made), made
    assert Job.objects.using(live_database).count() == sum(made)
    assert not Job.objects.using(live_database).filter(unique_slot__isnull=False).exists()


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_waiting_holder_cannot_start_before_the_deduping_caller_has_committed(live_database: str) -> None:
    holder = tasks.add.using(unique_key="k").enqueue(1)
    claimed: list[int] = []

    def claim_now(number: int) -> None:
        lanes, limits = [Lane("default", Execution.THREAD, 1)], {Execution.THREAD: (1, 0)}
        taken = claim(database(live_database), Owner(uuid4(), "w"), lanes, limits=limits, lease_seconds=60)
        claimed.extend(one.job_id for one in taken)

    with transaction.atomic(using=live_database):
        Effect.objects.using(live_database).create(label="what the job should see")
        row = tasks.add.using(unique_key="k").enqueue(2)
        assert (row.pk, row.created) == (holder.pk, False)
        assert at_once(live_database, claim_now, threads=1) == [None]
        assert claimed == []
    assert at_once(live_database, claim_now, threads=1) == [None]
    assert claimed == [holder.pk]


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_running_holder_is_given_without_waiting_for_anything(live_database: str) -> None:
    holder = tasks.add.using(unique_key="k").enqueue(1)
    lanes, limits = [Lane("default", Execution.THREAD, 1)], {Execution.THREAD: (1, 0)}
    claim(database(live_database), Owner(uuid4(), "w"), lanes, limits=limits, lease_seconds=60)
    with transaction.atomic(using=live_database):
        row = tasks.add.using(unique_key="k").enqueue(2)
        assert (row.pk, row.created, row.status) == (holder.pk, False, Status.RUNNING)
        # The engine's row is free for the engine.
        locked = at_once(live_database, lambda _: _lock(live_database, holder.pk), threads=1)
        assert locked == [[holder.pk]]


def _lock(alias: str, job_id: int) -> list[int]:
    with transaction.atomic(using=alias):
        found = Job.objects.using(alias).select_for_update(skip_locked=True).filter(pk=job_id)
        return list(found.values_list("pk", flat=True))
