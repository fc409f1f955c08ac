"""Every fault test on a live database ends with the checker of promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.store.database import database as database_of
from jobs.store.verify import verify


@pytest.fixture(autouse=True)
def promises(request: pytest.FixtureRequest) -> Iterator[None]:
    if "live_database" not in request.fixturenames:
        yield
        return
    alias = request.getfixturevalue("live_database")
    yield
    # What a killed scheduler held at the very end may be over for as long as a test takes to end.
    assert list(verify(database_of(alias), overdue_seconds=30.0)) == []
