"""What a zone's clocks do at one wall time: nothing, go forward over it, or go back over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Shift:
    """A transition of the tz database. All instants and wall times here are naive; instants are UTC."""

    at: datetime
    """The instant from which on the new offset holds."""
    before: timedelta
    after: timedelta

    @property
    def head(self) -> datetime:
        """The wall time that clocks show from `at` on."""
        return self.at + self.after

    @property
    def tail(self) -> datetime:
        """The wall time at which the old offset would have gone on; a fold ends here."""
        return self.at + self.before

    @property
    def gap(self) -> timedelta:
        """How much wall time is skipped; zero or less where it is repeated."""
        return self.after - self.before


def offsets_at(zone: tzinfo, wall: datetime) -> tuple[timedelta, timedelta]:
    """The UTC offsets before and after the transition that this wall time is caught in; equal when there is none."""
    aware = wall.replace(tzinfo=zone)
    return _offset(aware), _offset(aware.replace(fold=1))


def shift_at(zone: tzinfo, wall: datetime, before: timedelta, after: timedelta) -> Shift:
    """The transition, for a wall time whose two offsets differ."""
    if before < after:
        # Skipped: no clock shows it, so the transition is where clocks first show something later.
        at = _first(lambda instant: local(zone, instant)[0] > wall, wall - after, wall - before)
    else:
        at = _first(lambda instant: _offset_of(zone, instant) == after, wall - before, wall - after)
    return Shift(at, before, after)


def local(zone: tzinfo, instant: datetime) -> tuple[datetime, bool]:
    """What clocks show at a naive UTC instant, and whether they show it for the second time."""
    shown = instant.replace(tzinfo=timezone.utc).astimezone(zone)
    return shown.replace(tzinfo=None, fold=0), shown.fold == 1


def change_of_day(zone: tzinfo, instant: datetime) -> timedelta:
    """By how much clocks jump during the local day of a naive UTC instant: forward is positive, zero is usual."""
    midnight = local(zone, instant)[0].replace(hour=0, minute=0, second=0, microsecond=0)
    return offsets_at(zone, midnight + timedelta(days=1))[0] - offsets_at(zone, midnight)[0]


def _offset_of(zone: tzinfo, instant: datetime) -> timedelta:
    return _offset(instant.replace(tzinfo=timezone.utc).astimezone(zone))


def _offset(aware: datetime) -> timedelta:
    offset = aware.utcoffset()
    assert offset is not None, "zones of the tz database always know their offset"
    return offset


def _first(holds: Callable[[datetime], bool], low: datetime, high: datetime) -> datetime:
    """The first whole second after `low` at which it holds, given that it does at `high` and not at `low`."""
    while high - low > SECOND:
        middle = low + timedelta(seconds=(high - low) // SECOND // 2)
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
