from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from jobs import Task, cron
from jobs.declared import sync_declared
from jobs.domain.registry import registry
from jobs.models import Schedule
from jobs.recurring import schedule_recurring
from tests.support.schedule_pages import stored
from tests.support.store import Bench

Login = Callable[..., Client]


@pytest.fixture
def bench(database: str) -> Bench:
    return Bench(database)


@pytest.fixture
def login() -> Login:
    """A client of a member of the staff with just these permissions, by their codenames."""

    def as_member(*permissions: str, enforce_csrf_checks: bool = False) -> Client:
        user = User.objects.create_user(f"member-{'-'.join(permissions)}"[:150], is_staff=True)
        found = list(Permission.objects.filter(codename__in=permissions, content_type__app_label="jobs"))
        assert len(found) == len(permissions)
        user.user_permissions.set(found)
        client = Client(enforce_csrf_checks=enforce_csrf_checks)
        client.force_login(user)
        return client

    return as_member


@pytest.fixture
def receipt_task() -> Iterator[Task[Any, Any]]:
    def send_receipt(order: int, *, copy_to: str | None = None) -> None:
        """Send the receipt of one order."""

    yield Task(send_receipt, name="tests.send_receipt", queue="mail", priority=50)
    registry.remove("tests.send_receipt")


@pytest.fixture
def nightly(database: str, receipt_task: Task[Any, Any]) -> Schedule:
    schedule_recurring(receipt_task, cron="0 7 * * mon-fri", timezone="Europe/Berlin", name="nightly", args=[42])
    return stored(database)


@pytest.fixture
def declared(database: str) -> Iterator[Schedule]:
    def report(day: str) -> None: ...

    Task(report, name="tests.report", schedule=cron("0 7 * * *", timezone="UTC", args=["today"]))
    sync_declared()
    yield stored(database, "tests.report")
    registry.remove("tests.report")
