"""Every fault test on a live database ends with the checker of promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.store.database import database as database_of
from jobs.store.verify import verify

# Outages, frozen and killed processes take their leases' time: `python -m pytest -m slow tests/faults` runs them.
LONG = (
    "test_crashes",
    "test_dead_threads",
    "test_engine_points",
    "test_frozen_workers",
    "test_hostile_outcomes",
    "test_locked_sqlite",
    "test_long_jobs",
    "test_loops",
    "test_lost_answers",
    "test_missing_tasks",
    "test_near_the_limit",
    "test_outage",
    "test_sessions",
    "test_writers",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem in LONG:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def promises(request: pytest.FixtureRequest) -> Iterator[None]:
    if "live_database" not in request.fixturenames:
        yield
        return
    alias = request.getfixturevalue("live_database")
    yield
    # What a killed scheduler held at the very end may be over for as long as a test takes to end.
    assert list(verify(database_of(alias), overdue_seconds=30.0)) == []
