"""Looking back with nothing but a step forward, in a number of steps that does not grow with the time looked over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

Step = Callable[[datetime], datetime | None]
"""The first occurrence strictly after an instant."""

FIRST_REACH = timedelta(minutes=1)
WIDER = 4


def latest(step: Step, since: datetime, now: datetime, reach: timedelta = FIRST_REACH) -> datetime | None:
    """The newest occurrence in (since, now]. `reach`: how far back to look at first; a good guess saves steps."""
    found = step(since)
    if found is None or found > now:
        return None
    high = now  # nothing in (high, now]
    low = now - min(reach, now - since)
    while low > since:
        nearer = step(low)
        if nearer is not None and nearer <= now:
            found = nearer
            break
        high = low
        reach *= WIDER
        low = now - min(reach, now - since)
    return _newest_from(step, found, high, now)


def newest(step: Step, count: int, since: datetime, now: datetime) -> list[datetime]:
    """The newest `count` occurrences in (since, now], oldest first."""
    found: list[datetime] = []
    reach = FIRST_REACH
    until = now
    while len(found) < count:
        one = latest(step, since, until, reach)
        if one is None:
            break
        if found:
            # Rules are regular: the one before is likely to be as far away as this one.
            reach = found[-1] - one
        found.append(one)
        until = one - timedelta(microseconds=1)
    return found[::-1]


def count(step: Step, since: datetime, now: datetime, at_most: int) -> int:
    """How many occurrences are in (since, now], counting no further than `at_most`."""
    counted = 0
    found = step(since)
    while counted < at_most and found is not None and found <= now:
        counted += 1
        found = step(found) if counted < at_most else None
    return counted


def upcoming(step: Step, count: int, after: datetime) -> list[datetime]:
    """The first `count` occurrences strictly after, fewer when there are no more."""
    found: list[datetime] = []
    while len(found) < count:
        following = step(found[-1] if found else after)
        if following is None:
            break
        found.append(following)
    return found


def _newest_from(step: Step, found: datetime, high: datetime, now: datetime) -> datetime:
    """The newest up to `now`, given an occurrence up to `now` and that there is none in (high, now]."""
    while True:
        following = step(found)
        if following is None or following > now:
            return found
        middle = following + (high - following) / 2
        nearer = step(middle)
        if nearer is not None and nearer <= now:
            found = nearer
        else:
            found, high = following, middle
