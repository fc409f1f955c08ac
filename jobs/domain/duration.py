"""Durations as callers write them: a number of seconds, or a timedelta."""

from __future__ import annotations

import math
from datetime import timedelta

from jobs.domain.errors import InvalidOption
from jobs.domain.text import shown

DAY_SECONDS = 86_400.0
YEAR_SECONDS = 366 * DAY_SECONDS


def seconds_of(value: object, name: str, *, at_most: float = math.inf) -> float:
    """Finite seconds, 0 or more; raises `InvalidOption` that names the option."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
    else:
        raise InvalidOption(f"{name}={shown(value)}: give a number of seconds or a timedelta")
    if not math.isfinite(seconds) or seconds < 0:
        raise InvalidOption(f"{name}={shown(value)}: give finite seconds, 0 or more")
    if seconds > at_most:
        raise InvalidOption(f"{name}={shown(value)}: at most {at_most / DAY_SECONDS:g} days")
    return seconds + 0.0  # -0.0 becomes 0.0
