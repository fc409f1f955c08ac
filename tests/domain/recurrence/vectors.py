"""The shared vectors, as parameters. Their expected values come from a minute-by-minute scan without croniter."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("vectors.json").read_text(encoding="utf-8")
)


def parameters(group: str) -> list[ParameterSet]:
    return [
        pytest.param(vector, id=f"{number:03} {vector.get('note') or ascii(vector['expression'])}")
        for number, vector in enumerate(VECTORS[group], 1)
    ]


def at(text: str) -> datetime:
    """`2025-01-01T00:00:00.5Z`, which Python 3.10 does not read by itself."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{fraction or '0':0<6}+00:00")
