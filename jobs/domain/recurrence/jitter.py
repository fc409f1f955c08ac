"""A delay for each occurrence, the same in every process; the occurrence keeps its own instant as its identity."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone

from jobs.domain.errors import InvalidRule
from jobs.domain.text import shown

SECOND = timedelta(seconds=1)
NONE = timedelta(0)


def checked_jitter(value: object, shortest_spacing: timedelta) -> timedelta:
    """The window; it must be whole seconds, and shorter than the time between two occurrences."""
    if not isinstance(value, timedelta) or value < NONE or value % SECOND:
        raise InvalidRule(f"jitter: {shown(value)}: give a timedelta of whole seconds, 0 or more", "jitter")
    if value and value >= shortest_spacing:
        seconds = shortest_spacing // SECOND
        raise InvalidRule(f"jitter: it must be shorter than the {seconds} s between two occurrences", "jitter")
    return value


def delay(window: timedelta, occurrence: datetime, key: str) -> timedelta:
    """0 or more and less than the window; `key` names the schedule, so that schedules spread apart."""
    if not window:
        return NONE
    # Never hash(), which differs from process to process.
    text = f"{key} {occurrence.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S}"
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:16], "big")
    return timedelta(microseconds=number % (window // timedelta(microseconds=1)))
