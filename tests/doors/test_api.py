"""get, cancel, requeue and their async twins, for jobs in every condition."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.utils.timezone import now

import jobs
from jobs import InvalidOption, JobNotFound, RetryPolicy, Status
from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.models import Job
from jobs.store.claim import Owner, claim
from jobs.store.database import database as store_database
from jobs.store.pick import Lane
from jobs.testing import run_jobs
from tests.support import tasks
from tests.support.store import Bench

LATER = datetime(2100, 1, 1, tzinfo=timezone.utc)
UNKNOWN = [987_654_321, 0, -1, 2**40, 2**63, 10**30]


def claim_all(database: str) -> list[Claim]:
    bench = Bench(database)
    lanes = [Lane("default", execution, 10) for execution in Execution]
    owner: Owner = bench.owner
    return claim(store_database(database), owner, lanes, limits=dict.fromkeys(Execution, (10, 0)), lease_seconds=60)


def pending(database: str) -> Job:
    return tasks.add.enqueue(1)


def scheduled(database: str) -> Job:
    return tasks.add.using(run_at=LATER).enqueue(1)


def running(database: str) -> Job:
    row = tasks.add.enqueue(1)
    claim_all(database)
    return row


def asked_to_stop(database: str) -> Job:
    row = running(database)
    jobs.cancel(row)
    return row


def waiting_for_retry(database: str) -> Job:
    row = tasks.misbehave.using(retry=RetryPolicy(max_retries=1, base_delay=60, jitter=False)).enqueue("value_error")
    run_jobs()
    return row


def completed(database: str) -> Job:
    row = tasks.add.enqueue(1)
    run_jobs()
    return row


def failed(database: str) -> Job:
    row = tasks.misbehave.enqueue("non_retryable")
    run_jobs()
    return row


def cancelled(database: str) -> Job:
    row = tasks.add.enqueue(1)
    jobs.cancel(row)
    return row


Make = Callable[[str], Job]

# condition, cancel() says, status afterwards, with running=False: says, status afterwards
CANCELS: list[tuple[Make, bool, str, bool, str]] = [
    (pending, True, "cancelled", True, "cancelled"),
    (scheduled, True, "cancelled", True, "cancelled"),
    (waiting_for_retry, True, "cancelled", True, "cancelled"),
    (running, True, "running", False, "running"),
    (asked_to_stop, True, "running", False, "running"),
    (completed, False, "completed", False, "completed"),
    (failed, False, "failed", False, "failed"),
    (cancelled, False, "cancelled", False, "cancelled"),
]


@pytest.mark.parametrize(("make", "says", "then", "_", "__"), CANCELS)
def test_cancel_is_true_when_it_ended_the_job_or_stored_a_request(
    database: str, make: Make, says: bool, then: str, _: bool, __: str
) -> None:
    row = make(database)
    assert jobs.cancel(row, "not needed", actor="anna") is says
    found = jobs.get(row)
    assert found.status == then
    assert (found.cancel_requested_at is not None) is says or make is cancelled
    if says and make is not asked_to_stop:
        assert found.cause == "cancelled by anna: not needed"


@pytest.mark.parametrize(("make", "_", "__", "says", "then"), CANCELS)
def test_cancel_may_leave_running_jobs_alone(
    database: str, make: Make, _: bool, __: str, says: bool, then: str
) -> None:
    row = make(database)
    asked_at = jobs.get(row).cancel_requested_at
    assert jobs.cancel(row, running=False) is says
    found = jobs.get(row)
    assert found.status == then
    if then == "running":
        assert found.cancel_requested_at == asked_at


@pytest.mark.parametrize("job_id", UNKNOWN)
def test_an_unknown_job_is_not_cancelled_not_requeued_and_not_found(database: str, job_id: int) -> None:
    assert jobs.cancel(job_id) is False
    assert jobs.requeue(job_id) is False
    for door in (jobs.get, jobs.explain):
        with pytest.raises(JobNotFound, match=f"there is no job {job_id}"):
            door(job_id)


def test_a_reason_that_a_database_cannot_hold_is_stored_readably(database: str) -> None:
    row = tasks.add.enqueue(1)
    assert jobs.cancel(row, "a\0b \ud800 " + "\U0001f600" * 300) is True
    cause = jobs.get(row).cause
    assert cause.startswith(r"cancelled: a\u0000b \ud800")
    assert len(cause) <= 200


@pytest.mark.parametrize(
    ("make", "says", "then"),
    [
        (failed, True, "pending"),
        (cancelled, True, "pending"),
        (pending, False, "pending"),
        (scheduled, False, "scheduled"),
        (running, False, "running"),
        (waiting_for_retry, False, "retry_wait"),
        (completed, False, "completed"),
    ],
)
def test_requeue_puts_only_badly_ended_jobs_back(database: str, make: Make, says: bool, then: str) -> None:
    row = make(database)
    assert jobs.requeue(row) is says
    assert jobs.get(row).status == then


def test_a_requeued_job_starts_counting_anew_and_runs_again(database: str) -> None:
    row = tasks.misbehave.enqueue("value_error")
    run_jobs()
    assert [jobs.get(row).status, jobs.get(row).failures, jobs.get(row).attempts] == ["failed", 3, 3]
    jobs.requeue(row)
    found = jobs.get(row)
    assert [found.failures, found.losses, found.attempts, found.cause, found.ended_at] == [0, 0, 3, "", None]
    assert list(found.runs.order_by("number").values_list("number", flat=True)) == [1, 2, 3]
    run_jobs(max_jobs=1)
    assert jobs.get(row).attempts == 4


def test_a_requeued_cancelled_job_has_no_request_to_stop(database: str) -> None:
    row = cancelled(database)
    jobs.requeue(row)
    assert jobs.get(row).cancel_requested_at is None
    run_jobs()
    assert jobs.get(row).status == "completed"


def test_a_requeue_may_be_for_later(database: str) -> None:
    row = failed(database)
    assert jobs.requeue(row, run_at=LATER) is True
    assert [jobs.get(row).status, jobs.get(row).run_at] == ["scheduled", LATER]
    other = failed(database)
    assert jobs.requeue(other, delay=timedelta(hours=1)) is True
    found = jobs.get(other)
    assert found.status == "scheduled"
    assert timedelta(minutes=59) < found.run_at - now() <= timedelta(hours=1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"run_at": LATER, "delay": 1}, "give run_at or delay, not both"),
        ({"run_at": LATER.replace(tzinfo=None)}, "is naive, and USE_TZ is on"),
        ({"delay": -1}, "delay=-1: give finite seconds, 0 or more"),
    ],
)
def test_a_wrong_time_for_a_requeue_is_refused_in_words(database: str, wrong: dict[str, object], words: str) -> None:
    row = failed(database)
    with pytest.raises(InvalidOption, match=words):
        jobs.requeue(row, **wrong)  # type: ignore[arg-type]
    assert jobs.get(row).status == "failed"


def test_ids_and_rows_are_taken_alike(database: str) -> None:
    row = tasks.add.enqueue(1)
    assert jobs.get(row) == jobs.get(row.pk)
    assert jobs.explain(row) == jobs.explain(row.pk)
    assert jobs.cancel(row.pk) is True
    assert jobs.requeue(row.pk) is True


def test_the_async_doors_do_the_same(database: str) -> None:
    row = tasks.add.enqueue(1)
    assert async_to_sync(jobs.aget)(row.pk) == row
    assert async_to_sync(jobs.aexplain)(row).status is Status.PENDING
    assert async_to_sync(jobs.acancel)(row, "no", running=False, actor="anna") is True
    assert jobs.get(row).cause == "cancelled by anna: no"
    assert async_to_sync(jobs.arequeue)(row, delay=60) is True
    assert jobs.get(row).status == "scheduled"
    with pytest.raises(JobNotFound):
        async_to_sync(jobs.aget)(987_654_321)


def test_a_requeue_with_a_delay_counts_from_the_databases_clock(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if connections[database].vendor == "sqlite":
        pytest.skip("SQLite's clock is the host's")
    row = tasks.misbehave.using(retry=0).enqueue("value_error")
    run_jobs()
    long_ago = now() - timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: long_ago)
    assert jobs.requeue(row, delay=600)
    assert jobs.get(row).status == Status.SCHEDULED
