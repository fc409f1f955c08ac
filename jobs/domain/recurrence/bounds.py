"""From when, until when a rule runs: half-open, start <= occurrence < end."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from jobs.domain.errors import InvalidRule
from jobs.domain.text import shown

TICK = timedelta(microseconds=1)


def utc(value: object, part: str) -> datetime:
    """The same instant in UTC; `InvalidRule` for whatever is no aware datetime."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidRule(f"{part}: {shown(value)} is no datetime with a time zone", part)
    try:
        return value.astimezone(timezone.utc)
    except OverflowError as error:
        raise InvalidRule(f"{part}: {shown(value)} is outside the calendar", part) from error


def checked_bounds(start: object, end: object) -> tuple[datetime | None, datetime | None]:
    first = None if start is None else utc(start, "start")
    last = None if end is None else utc(end, "end")
    if first is not None and last is not None and last <= first:
        raise InvalidRule(f"end: it must be after the start, {first:%Y-%m-%d %H:%M:%S} UTC", "end")
    return first, last


def floor(after: datetime, start: datetime | None) -> datetime:
    """The instant strictly after which to look, so that the start itself counts."""
    return after if start is None else max(after, start - TICK)


def until(found: datetime | None, end: datetime | None) -> datetime | None:
    """What was found, unless the rule has ended by then."""
    return None if found is None or (end is not None and found >= end) else found
