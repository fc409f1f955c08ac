from __future__ import annotations

import bisect
import random
from datetime import datetime, timedelta

import pytest

from jobs.domain.recurrence import Cron
from tests.domain.recurrence.oracle import Oracle, changes, utc
from tests.domain.recurrence.rules import EXPRESSIONS, PLACES

AROUND = timedelta(minutes=200)


def instants_to_ask(instants: list[datetime], jumps: list[datetime], first: datetime, last: datetime) -> set[datetime]:
    """Where something might be wrong, and a few places at random."""
    rng = random.Random(4)
    asked = {first + rng.random() * (last - first) for _ in range(20)}
    for jump in jumps:
        low = bisect.bisect_left(instants, jump - AROUND)
        near = instants[max(0, low - 1) : bisect.bisect_left(instants, jump + AROUND) + 1]
        chosen = near if len(near) < 40 else rng.sample(near, 40)
        asked |= {one + timedelta(microseconds=shift) for one in chosen for shift in (-1, 0)}
        asked |= {jump + rng.uniform(-1, 1) * AROUND for _ in range(5)} | {jump, jump - timedelta(seconds=1)}
    return {one for one in asked if first <= one < last}


def disagreements(expression: str, zone: str, first: datetime, last: datetime) -> list[str]:
    instants = Oracle(expression, zone, first, last).instants
    rule = Cron(expression, zone)
    found = []
    for after in sorted(instants_to_ask(instants, changes(zone, first, last), first, last)):
        number = bisect.bisect_right(instants, after)
        expected = instants[number] if number < len(instants) else None
        got = rule.next_after(after)
        if (expected is None and got is not None and got < last) or (expected is not None and got != expected):
            found.append(f"{zone} {expression} after {after}: {got}, not {expected}")
        if number and rule.latest(first - timedelta(microseconds=1), after) != instants[number - 1]:
            found.append(f"{zone} {expression} latest up to {after}: not {instants[number - 1]}")
    return found


@pytest.mark.parametrize(("zone", "year"), PLACES)
def test_cron_agrees_with_a_scan_of_every_minute_near_changes_of_clocks(zone: str, year: int) -> None:
    found = []
    for jump in changes(zone, utc(year), utc(year + 1)) or [utc(year, 3, 9)]:
        day = jump.replace(hour=0, minute=0)
        for expression in random.Random(str(jump)).sample(EXPRESSIONS, 6):
            found += disagreements(expression, zone, day - timedelta(days=2), day + timedelta(days=3))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize(("zone", "year"), PLACES)
def test_cron_agrees_with_a_scan_of_two_years(zone: str, year: int, expression: str) -> None:
    found = disagreements(expression, zone, utc(year), utc(year + 2))
    assert not found, "\n".join(found)
