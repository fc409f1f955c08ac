from __future__ import annotations

import pytest

from tests.support.store import Bench


@pytest.fixture
def bench(database: str) -> Bench:
    return Bench(database)


@pytest.fixture
def live_bench(live_database: str) -> Bench:
    return Bench(live_database)
