"""Nothing but the store's verbs moves a job: every other route to a guarded column is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core import serializers
from django.db import IntegrityError, connections, transaction

from jobs.domain.errors import IllegalMove
from jobs.domain.status import LEGAL_MOVES, Status
from jobs.models import Attempt, Failure, Job, Payload
from jobs.models.guard import GUARDED, GuardedQuerySet, legal_from
from jobs.testing import run_jobs
from tests.support import tasks
from tests.support.store import Bench

LEGAL = """
    blocked     -> scheduled pending cancelled
    scheduled   -> pending cancelled
    pending     -> running scheduled cancelled
    running     -> completed failed timed_out cancelled retry_wait pending scheduled
    retry_wait  -> pending cancelled failed timed_out
    completed   ->
    failed      -> pending scheduled
    timed_out   -> pending scheduled
    cancelled   -> pending scheduled blocked
"""
"""DESIGN's table, written down a second time."""

TABLE = {old.strip(): new.split() for old, new in (line.split("->") for line in LEGAL.strip().splitlines())}
NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def job(database: str) -> Job:
    stored: Job = Job.objects.using(database).get(pk=tasks.add.enqueue(1).pk)
    return stored


def status(job: Job) -> str:
    return str(Job.objects.using(job._state.db).values_list("status", flat=True).get(pk=job.pk))


@pytest.mark.parametrize(("old", "new"), list(itertools.product(Status, Status)))
def test_a_verb_can_be_written_for_legal_moves_only(old: Status, new: Status) -> None:
    if new in TABLE[old]:
        assert legal_from(old, to=new) == f"('{old}')"
    else:
        with pytest.raises(IllegalMove, match=f"from {old} to {new}"):
            legal_from(old, to=new)


def test_the_table_of_legal_moves_is_the_one_in_the_design() -> None:
    assert {str(old): [str(one) for one in new] for old, new in LEGAL_MOVES.items()} == TABLE


def test_one_illegal_source_among_legal_ones_is_refused() -> None:
    with pytest.raises(IllegalMove, match="from completed"):
        legal_from(Status.RUNNING, Status.COMPLETED, to=Status.FAILED)


ROUTES: dict[str, Callable[[Any, Job, str, Any], object]] = {
    "update": lambda jobs, job, column, value: jobs.filter(pk=job.pk).update(**{column: value}),
    "update of more": lambda jobs, job, column, value: jobs.all().update(max_retries=1, **{column: value}),
    "bulk_update": lambda jobs, job, column, value: jobs.bulk_update([_set(job, column, value)], [column]),
    "bulk_update by name": lambda jobs, job, column, value: jobs.bulk_update(
        objs=[_set(job, column, value)], fields=iter([column])
    ),
    "save(update_fields)": lambda jobs, job, column, value: _set(job, column, value).save(update_fields=[column]),
    "save by position": lambda jobs, job, column, value: _save_by_position(_set(job, column, value), column),
    "update_or_create": lambda jobs, job, column, value: jobs.update_or_create(pk=job.pk, defaults={column: value}),
    "upsert": lambda jobs, job, column, value: jobs.bulk_create(
        [Job(id=job.pk, task="x")], update_conflicts=True, unique_fields=["id"], update_fields=["task", column]
    ),
    "upsert by position": lambda jobs, job, column, value: jobs.bulk_create(
        [Job(id=job.pk, task="x")], None, False, True, [column], ["id"]
    ),
}


def _save_by_position(job: Any, column: str) -> None:
    job.save(False, False, None, [column])


def _set(job: Job, column: str, value: Any) -> Job:
    setattr(job, column, value)
    return job


@pytest.mark.parametrize("manager", ["objects", "_default_manager", "_base_manager"])
@pytest.mark.parametrize("route", ROUTES)
def test_no_route_of_the_orm_writes_a_status(job: Job, route: str, manager: str) -> None:
    jobs = getattr(Job, manager).using(job._state.db)
    assert isinstance(jobs, GuardedQuerySet)
    with pytest.raises((IllegalMove, TypeError)):
        ROUTES[route](jobs, job, "status", "completed")
    assert status(job) == "pending"


@pytest.mark.parametrize("column", GUARDED)
def test_no_guarded_column_is_written_by_update_or_by_save(job: Job, column: str) -> None:
    jobs = Job.objects.using(job._state.db)
    stored = jobs.values_list(column, flat=True).get(pk=job.pk)
    for route in ("update", "bulk_update", "save(update_fields)"):
        with pytest.raises(IllegalMove, match=column):
            ROUTES[route](jobs, job, column, stored)


@pytest.mark.parametrize("route", ["aupdate", "abulk_update", "asave"])
def test_the_async_routes_are_the_same_routes(database: str, route: str) -> None:
    row = Job.objects.using(database).get(pk=tasks.add.enqueue(1).pk)

    async def write() -> None:
        match route:
            case "aupdate":
                await Job.objects.using(database).aupdate(status="completed")
            case "abulk_update":
                await Job.objects.using(database).abulk_update([row], ["status"])
            case _:
                await row.asave(update_fields=["status"])

    with pytest.raises(IllegalMove):
        async_to_sync(write)()
    assert status(row) == "pending"


def test_a_stale_instance_cannot_move_its_job_back(job: Job) -> None:
    bench = Bench(job._state.db or "")
    bench.now = max(bench.now, datetime.now(timezone.utc))
    stale = bench.job(job.pk)
    (claimed,) = bench.claim()
    stale.max_retries = 7
    stale.save()
    assert (bench.job(job.pk).status, bench.job(job.pk).max_retries) == (Status.RUNNING, 7)
    bench.close(claimed)
    stale.status = Status.PENDING
    stale.cause = "mine"
    stale.unique_slot = "k"
    stale.save()
    stored = bench.job(job.pk)
    assert (stored.status, stored.cause, stored.unique_slot) == (Status.COMPLETED, "", None)


def test_a_partly_loaded_instance_saves_what_it_loaded_and_nothing_guarded(job: Job) -> None:
    part = Job.objects.using(job._state.db).only("id", "status", "max_retries").get(pk=job.pk)
    part.status = Status.COMPLETED
    part.max_retries = 3
    part.save()
    assert (status(job), Job.objects.using(job._state.db).get(pk=job.pk).max_retries) == ("pending", 3)


@pytest.mark.parametrize(
    "odd", [one for one in Status if one not in (Status.BLOCKED, Status.SCHEDULED, Status.PENDING)]
)
def test_no_job_is_born_in_an_odd_status(database: str, odd: Status) -> None:
    jobs = Job.objects.using(database)
    companions = {"ended_at": NOW} if odd in (Status.COMPLETED, Status.FAILED) else {}
    born = Job(task="x", status=odd, **companions)
    with pytest.raises(IllegalMove, match="born"):
        born.save(using=database)
    with pytest.raises(IllegalMove, match="born"):
        jobs.create(task="x", status=odd, **companions)
    with pytest.raises(IllegalMove, match="born"):
        jobs.bulk_create([Job(task="y"), born])
    with pytest.raises(IllegalMove, match="born"):
        jobs.get_or_create(pk=12345, defaults={"task": "x", "status": odd})
    assert not jobs.exists()


def test_no_job_is_born_ended_or_with_attempts(database: str) -> None:
    for companions in ({"ended_at": NOW}, {"attempts": 1}):
        with pytest.raises(IllegalMove, match="born"):
            Job(task="x", **companions).save(using=database)


def test_a_birth_under_the_number_of_another_job_does_not_overwrite_it(job: Job) -> None:
    with pytest.raises(IntegrityError), transaction.atomic(using=job._state.db):
        Job(pk=job.pk, task="other").save(using=job._state.db)
    with pytest.raises((IllegalMove, ValueError)), transaction.atomic(using=job._state.db):
        Job(pk=job.pk, task="other").save(using=job._state.db, force_update=True)
    assert Job.objects.using(job._state.db).get(pk=job.pk).task == job.task


def load(alias: str, **fields: Any) -> None:
    """What `loaddata` does with one object."""
    pk = fields.pop("pk")
    text = json.dumps([{"model": "jobs.job", "pk": pk, "fields": {"task": "x", **fields}}])
    for one in serializers.deserialize("json", text, using=alias):
        one.save(using=alias)


def test_a_fixture_overwrites_no_job(job: Job) -> None:
    with pytest.raises(IllegalMove, match="fixture"):
        load(job._state.db or "", pk=job.pk, status="completed", ended_at=NOW.isoformat())
    with pytest.raises(IllegalMove, match="fixture"):
        load(job._state.db or "", pk=job.pk, status="pending")
    assert Job.objects.using(job._state.db).get(pk=job.pk).task == job.task


def test_a_fixture_gives_birth_to_jobs_in_initial_statuses_only(database: str) -> None:
    with pytest.raises(IllegalMove, match="born"):
        load(database, pk=1, status="running")
    load(database, pk=1, status="scheduled")
    assert Job.objects.using(database).get(pk=1).status == "scheduled"


def test_columns_that_are_not_guarded_may_be_written_by_every_route(job: Job) -> None:
    jobs = Job.objects.using(job._state.db)
    assert jobs.filter(pk=job.pk).update(max_retries=2) == 1
    assert jobs.bulk_update([_set(job, "max_retries", 3)], ["max_retries"]) == 1
    _set(job, "max_retries", 4).save(update_fields=["max_retries"])
    assert jobs.get(pk=job.pk).max_retries == 4


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("status = 'completed'", "ended_iff_terminal"),
        ("ended_at = submitted_at", "ended_iff_terminal"),
        ("status = 'done'", "status_known"),
        ("status = 'failed', ended_at = submitted_at, unique_slot = 'k'", "no_slot_when_ended"),
        ("attempts = -1", "counts_not_negative"),
        ("failures = -1", "counts_not_negative"),
        ("losses = -1", "counts_not_negative"),
        ("snoozes = -1", "counts_not_negative"),
        ("interruptions = -1", "counts_not_negative"),
    ],
)
def test_the_database_itself_refuses_a_status_without_its_companions(job: Job, change: str, constraint: str) -> None:
    alias = job._state.db or ""
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute(f"UPDATE jobs_job SET {change} WHERE id = {job.pk}")


def test_the_database_itself_refuses_a_second_open_attempt(job: Job) -> None:
    bench = Bench(job._state.db or "")
    bench.now = max(bench.now, datetime.now(timezone.utc))
    (claimed,) = bench.claim()
    attempts = Attempt.objects.using(bench.alias)
    with pytest.raises(IntegrityError), transaction.atomic(using=bench.alias):
        attempts.create(job_id=job.pk, number=2, worker_id=bench.owner.id, lease_until=NOW)
    with pytest.raises(IntegrityError, match="ended_iff_closed"), transaction.atomic(using=bench.alias):
        attempts.filter(pk=claimed.attempt_id).update(outcome="failed")
    with pytest.raises(IntegrityError, match="ended_iff_closed"), transaction.atomic(using=bench.alias):
        attempts.filter(pk=claimed.attempt_id).update(ended_at=NOW)


def test_a_related_manager_is_guarded_too(job: Job) -> None:
    payload = Payload.objects.using(job._state.db).get(pk=job.pk)
    payload.job.status = Status.COMPLETED
    payload.job.save()
    assert status(job) == "pending"
    with pytest.raises(IllegalMove):
        type(payload.job)._base_manager.using(job._state.db).update(status="completed")


def test_a_job_made_without_its_payload_fails_alone(database: str) -> None:
    """Whoever goes round `enqueue` must not stop the claim for everybody."""
    made = Job.objects.using(database).create(task=tasks.add.name)
    good = tasks.add.enqueue(1)
    ran = dict(run_jobs().attempts)
    assert ran == {made.pk: Status.FAILED, good.pk: Status.COMPLETED}
    assert "stored arguments are not" in Failure.objects.using(database).get(job_id=made.pk).message
