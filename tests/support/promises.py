"""The checker of promises, after each test on a live database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.store.database import database as database_of
from jobs.store.verify import verify


def checked(request: pytest.FixtureRequest, *, overdue_seconds: float) -> Iterator[None]:
    """The body of an autouse fixture. A lease may be over for that long."""
    if "live_database" not in request.fixturenames:
        yield
        return
    alias = request.getfixturevalue("live_database")
    yield
    assert list(verify(database_of(alias), overdue_seconds=overdue_seconds)) == []
