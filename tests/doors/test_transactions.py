"""Submitting is part of the caller's own transaction, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings

import jobs
from jobs import InvalidArguments, InvalidOption, QueueNotDeclared
from jobs.models import Job
from tests.support import tasks
from tests.support.models import Effect


class Undo(Exception):
    pass


@contextmanager
def undone(database: str) -> Iterator[None]:
    """A transaction, or a savepoint, that is rolled back."""
    with suppress(Undo), transaction.atomic(using=database):
        yield
        raise Undo


def order(request: HttpRequest, fate: str) -> HttpResponse:
    tasks.add.enqueue(1)
    if fate == "raise":
        raise Undo
    return HttpResponse("ordered")


urlpatterns = [path("order/<str:fate>/", order)]


def stored(database: str) -> list[int]:
    return list(Job.objects.using(database).order_by("id").values_list("id", flat=True))


def test_a_commit_keeps_the_job(live_database: str) -> None:
    with transaction.atomic(using=live_database):
        row = tasks.add.enqueue(1)
    assert stored(live_database) == [row.pk]


def test_a_rollback_removes_the_job(live_database: str) -> None:
    with undone(live_database):
        row = tasks.add.enqueue(1)
        jobs.enqueue_many([tasks.add.bind(n) for n in range(3)])
        assert jobs.get(row).status == "pending"
    assert stored(live_database) == []


def test_a_rollback_to_a_savepoint_removes_only_the_jobs_inside(live_database: str) -> None:
    with transaction.atomic(using=live_database):
        before = tasks.add.enqueue(1)
        with undone(live_database):
            tasks.add.enqueue(2)
        after = tasks.add.enqueue(3)
    assert stored(live_database) == [before.pk, after.pk]


def test_a_rollback_frees_the_unique_key(live_database: str) -> None:
    with undone(live_database):
        tasks.add.using(unique_key="k").enqueue(1)
    assert tasks.add.using(unique_key="k").enqueue(2).created is True


@pytest.mark.parametrize(("fate", "kept"), [("answer", 1), ("raise", 0)])
def test_with_atomic_requests_a_failed_request_leaves_no_job(
    live_database: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, fate: str, kept: int
) -> None:
    settings.ROOT_URLCONF = __name__
    monkeypatch.setitem(connections.settings[live_database], "ATOMIC_REQUESTS", True)
    client = Client(raise_request_exception=False)
    assert client.get(f"/order/{fate}/").status_code == (200 if kept else 500)
    assert len(stored(live_database)) == kept


def test_a_rejected_submission_leaves_the_transaction_usable(live_database: str) -> None:
    with transaction.atomic(using=live_database):
        Effect.objects.using(live_database).create(label="before")
        with pytest.raises(InvalidArguments):
            tasks.leave_mark.enqueue("a\0b")
        with pytest.raises(InvalidArguments):
            tasks.leave_mark.enqueue("\ud800")
        with pytest.raises(InvalidArguments):
            tasks.add.enqueue(float("nan"))  # type: ignore[arg-type]
        with pytest.raises(QueueNotDeclared):
            tasks.add.using(queue="post").enqueue(1)
        with pytest.raises(InvalidOption):
            tasks.add.using(unique_key="k" * 5000).enqueue(1)
        Effect.objects.using(live_database).create(label="after")
        row = tasks.add.enqueue(1)
    assert Effect.objects.using(live_database).count() == 2
    assert stored(live_database) == [row.pk]


def test_a_duplicate_of_a_unique_key_leaves_the_transaction_usable(live_database: str) -> None:
    holder = tasks.add.using(unique_key="k").enqueue(1)
    with transaction.atomic(using=live_database):
        assert tasks.add.using(unique_key="k").enqueue(2).pk == holder.pk
        row = tasks.add.enqueue(3)
    assert stored(live_database) == [holder.pk, row.pk]


def test_a_refused_requeue_leaves_the_transaction_usable(live_database: str) -> None:
    ended = tasks.add.using(unique_key="k").enqueue(1)
    jobs.cancel(ended)
    tasks.add.using(unique_key="k").enqueue(2)
    with transaction.atomic(using=live_database):
        with pytest.raises(jobs.UniqueKeyHeld):
            jobs.requeue(ended)
        row = tasks.add.enqueue(3)
    assert row.pk in stored(live_database)


def test_cancel_and_requeue_are_part_of_the_callers_transaction_too(live_database: str) -> None:
    waiting, ended = tasks.add.enqueue(1), tasks.add.enqueue(2)
    jobs.cancel(ended)
    with undone(live_database):
        assert jobs.cancel(waiting) is True
        assert jobs.requeue(ended) is True
    assert [jobs.get(waiting).status, jobs.get(ended).status] == ["pending", "cancelled"]
