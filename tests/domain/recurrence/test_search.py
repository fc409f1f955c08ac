from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.domain.recurrence import search
from jobs.domain.recurrence.grammar import read_expression
from jobs.domain.recurrence.wall_clock import WallClock

NOW = datetime(2026, 3, 5, 10, 17, 3, tzinfo=timezone.utc)
RULES = ("* * * * *", "*/15 * * * *", "0 9 * * mon-fri", "* 9 1 1 *", "0 0 1 * *", "0 0 29 2 *", "0 0 * 2 1#5")


class Counted:
    """A step forward that counts how often it was asked."""

    def __init__(self, expression: str) -> None:
        self._clock = WallClock(read_expression(expression), timezone.utc)
        self.steps = 0

    def __call__(self, after: datetime) -> datetime | None:
        self.steps += 1
        return self._clock.next_after(after)


@pytest.mark.parametrize("expression", RULES)
@pytest.mark.parametrize("days", [0.01, 1, 30, 366, 3_660, 18_300])
def test_looking_back_takes_some_thirty_steps_whatever_the_downtime(expression: str, days: float) -> None:
    step = Counted(expression)
    found = search.latest(step, NOW - timedelta(days=days), NOW)
    assert step.steps <= 36
    if found is not None:
        assert found <= NOW
        following = step(found)
        assert following is not None and following > NOW


@pytest.mark.parametrize("expression", RULES[:3])
def test_the_newest_of_a_regular_rule_take_few_steps_each(expression: str) -> None:
    step = Counted(expression)
    assert len(search.newest(step, 100, NOW - timedelta(days=3_660), NOW)) == 100
    assert step.steps <= 700


def test_counting_stops_where_it_is_told_to() -> None:
    step = Counted("* * * * *")
    assert search.count(step, NOW - timedelta(days=366), NOW, at_most=101) == 101
    assert step.steps == 101
    assert search.count(step, NOW - timedelta(days=366), NOW, at_most=0) == 0


def test_nothing_is_found_where_nothing_is() -> None:
    step = Counted("0 9 * * *")
    assert search.latest(step, NOW, NOW) is None
    assert search.latest(step, NOW, NOW - timedelta(days=9)) is None
    assert search.newest(step, 3, NOW, NOW) == []
    assert search.upcoming(step, 0, NOW) == []
