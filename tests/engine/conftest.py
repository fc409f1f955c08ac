"""A fixture that runs one test on every execution; each test ends with the checker of promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.promises import checked
from tests.support.steered import MODELS, Model


@pytest.fixture(params=MODELS, ids=lambda model: model.execution.value)
def model(request: pytest.FixtureRequest) -> Model:
    chosen: Model = request.param
    return chosen


@pytest.fixture(autouse=True)
def promises(request: pytest.FixtureRequest) -> Iterator[None]:
    # Every scheduler has been stopped by now: whatever it held it has given back.
    yield from checked(request, overdue_seconds=0.0)
