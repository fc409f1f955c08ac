"""A running scheduler starts a job after its caller's commit and not before, and never after a rollback."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from django.db import DatabaseError, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings

import jobs
from jobs.models import Job
from jobs.store.database import database
from jobs.store.verify import verify
from tests.support import tasks
from tests.support.engine import running
from tests.support.models import Effect
from tests.support.waiting import wait_until

ON_POSTGRES = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
"""While a transaction has written, SQLite lets nobody else write: a scheduler could not start anything anyway."""


def order(request: HttpRequest, fate: str) -> HttpResponse:
    tasks.leave_mark.enqueue("ordered")
    let_another_job_run()
    if fate == "fail":
        raise ZeroDivisionError
    return HttpResponse("ordered")


urlpatterns = [path("order/<str:fate>/", order)]


def let_another_job_run() -> None:
    """Until a job that was submitted later, elsewhere, has ended: the scheduler has looked since."""

    def submit_and_wait() -> None:
        try:
            row = tasks.leave_mark.enqueue("probe")
            wait_until(lambda: jobs.get(row).status == "completed", timeout=15)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(submit_and_wait).result()


@contextmanager
def served(alias: str) -> Iterator[None]:
    with running(poll=0.1) as scheduler:
        yield
        let_another_job_run()
        assert scheduler.join(15)
    assert list(verify(database(alias), overdue_seconds=0.0)) == []


def ran(alias: str) -> list[str]:
    return sorted(Effect.objects.using(alias).exclude(label="probe").values_list("label", flat=True))


@contextmanager
def undone(alias: str) -> Iterator[None]:
    """A transaction, or a savepoint, that is rolled back."""
    with suppress(ZeroDivisionError), transaction.atomic(using=alias):
        yield
        raise ZeroDivisionError


@ON_POSTGRES
def test_a_job_starts_after_its_callers_commit_and_not_before(live_database: str) -> None:
    with served(live_database):
        with transaction.atomic(using=live_database):
            tasks.leave_mark.enqueue("committed")
            with transaction.atomic(using=live_database):
                tasks.leave_mark.enqueue("savepoint kept")
            with undone(live_database):
                tasks.leave_mark.enqueue("savepoint undone")
            let_another_job_run()
            assert ran(live_database) == []
        with undone(live_database):
            tasks.leave_mark.enqueue("undone")
            let_another_job_run()
    assert ran(live_database) == ["committed", "savepoint kept"]


@ON_POSTGRES
def test_with_atomic_requests_a_job_starts_when_the_request_is_over(
    live_database: str, settings: Settings, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connections[live_database].settings_dict, "ATOMIC_REQUESTS", True)
    client.raise_request_exception = False
    with served(live_database):
        assert client.get("/order/fail/").status_code == 500
        assert ran(live_database) == []
        assert client.get("/order/succeed/").status_code == 200
    assert ran(live_database) == ["ordered"]


def test_a_rolled_back_job_never_runs(live_database: str) -> None:
    with served(live_database):
        with undone(live_database):
            tasks.leave_mark.enqueue("undone")
    assert ran(live_database) == []


def test_a_submit_that_cannot_be_stored_raises(live_database: str) -> None:
    with connections[live_database].cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_payload RENAME TO jobs_elsewhere")
    try:
        with pytest.raises(DatabaseError):
            tasks.leave_mark.enqueue("nowhere")
        with pytest.raises(DatabaseError):
            jobs.enqueue_many([tasks.leave_mark.bind("nowhere")] * 3)
    finally:
        with connections[live_database].cursor() as cursor:
            cursor.execute("ALTER TABLE jobs_elsewhere RENAME TO jobs_payload")
    assert not Job.objects.using(live_database).exists()


@ON_POSTGRES
def test_a_transaction_on_another_database_does_not_hold_the_job_back(live_database: str) -> None:
    """The job is stored where `JOBS` says, whatever the caller has open elsewhere: the README says so."""
    with served(live_database):
        with undone("default"):
            tasks.leave_mark.enqueue("kept")
    assert ran(live_database) == ["kept"]
