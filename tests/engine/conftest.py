"""Fixtures that run one test on every execution."""

from __future__ import annotations

import pytest

from tests.support.steered import MODELS, Model


@pytest.fixture(params=MODELS, ids=lambda model: model.execution.value)
def model(request: pytest.FixtureRequest) -> Model:
    chosen: Model = request.param
    return chosen
