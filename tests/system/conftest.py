"""Every system test ends with the checker of promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.promises import checked


@pytest.fixture(autouse=True)
def promises(request: pytest.FixtureRequest) -> Iterator[None]:
    # Every scheduler has ended by now: whatever it held it has given back.
    yield from checked(request, overdue_seconds=0.0)
