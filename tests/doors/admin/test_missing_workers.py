"""The list of jobs says when nobody is there to run them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from jobs.domain.execution import Execution
from jobs.store.database import database as store_database
from jobs.store.workers import WorkerCard, beat


def live(alias: str, role: str) -> None:
    card = WorkerCard(uuid4(), "w", "h", 1, role, "1", ("default",), {Execution.THREAD: 1})
    beat(store_database(alias), card)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ([], "No live worker: jobs wait"),
        (["worker"], "--role scheduler"),
        (["scheduler"], "--role worker"),
        (["both"], None),
        (["worker", "scheduler"], None),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_starts_it(
    database: str, admin_client: Client, roles: list[str], said: str | None
) -> None:
    for role in roles:
        live(database, role)
    page = admin_client.get("/admin/jobs/job/").content.decode()
    assert ("jobs-missing" in page) is (said is not None)
    if said is not None:
        assert said in page
