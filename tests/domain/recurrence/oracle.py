"""A second opinion on cron rules, by looking at every minute: no croniter, and nothing of `jobs.domain`.

It looks at what the clocks of a zone show, minute by minute of real time, and judges by what they showed before.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
HOUR_MINUTES = 60
NOTHING = timedelta(0)
CALENDAR_CHANGE = timedelta(hours=3)
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

DayTest = Callable[[date], bool]


class Oracle:
    """The instants of a rule in [first, last), in order, from one scan."""

    def __init__(self, expression: str, zone: str, first: datetime, last: datetime) -> None:
        minute, hour, month_day, month, week_day = expression.lower().split()
        self._is_open = "*" in minute or "*" in hour
        self._minutes = frozenset(numbers(minute, 0, 59))
        self._hours = frozenset(numbers(hour, 0, 23))
        self._months = frozenset(numbers(month, 1, 12, MONTHS))
        self._days = [] if month_day in ("*", "?") else [month_day_test(item) for item in month_day.split(",")]
        self._weekdays = [] if week_day in ("*", "?") else [week_day_test(item) for item in week_day.split(",")]
        self._matches_day = cache(self._judge_day)
        self.instants = list(self._scan(zone, first, last))

    def _judge_day(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        tests = [*self._days, *self._weekdays]  # both given: either will do
        return not tests or any(test(day) for test in tests)

    def _matches(self, wall: datetime) -> bool:
        return wall.minute in self._minutes and wall.hour in self._hours and self._matches_day(wall.date())

    def _scan(self, zone: str, first: datetime, last: datetime) -> Iterator[datetime]:
        seen = datetime.min  # noqa: DTZ901 - the latest wall time shown so far, and walls have no zone
        for instant, wall, gap in walls(zone, first - timedelta(days=2), last):
            if gap is None:
                found = self._in_even_hour(instant, wall, seen)
                seen = max(seen, wall + (HOUR_MINUTES - 1) * MINUTE)
            else:
                found = [instant] if self._fires(wall, gap, seen) else []
                seen = max(seen, wall)
            yield from (one for one in found if one >= first)

    def _in_even_hour(self, instant: datetime, wall: datetime, seen: datetime) -> list[datetime]:
        """All of a whole hour in which clocks run evenly."""
        ends = wall, wall + (HOUR_MINUTES - 1) * MINUTE
        if not any(one.hour in self._hours and self._matches_day(one.date()) for one in ends):
            return []
        return [
            instant + past * MINUTE
            for past in range(HOUR_MINUTES)
            if (wall.minute + past) % HOUR_MINUTES in self._minutes and self._fires(wall + past * MINUTE, NOTHING, seen)
        ]

    def _fires(self, wall: datetime, gap: timedelta, seen: datetime) -> bool:
        if self._is_open:
            return self._matches(wall)
        skipped = [wall - (number + 1) * MINUTE for number in range(gap // MINUTE if gap < CALENDAR_CHANGE else 0)]
        return any(one > seen and self._matches(one) for one in (wall, *skipped))


@lru_cache(maxsize=64)
def walls(zone: str, first: datetime, last: datetime) -> tuple[tuple[datetime, datetime, timedelta | None], ...]:
    """Instants, what clocks show, and how much they skipped just before; None for a whole hour without a change."""
    place = ZoneInfo(zone)

    def shown(at: datetime) -> datetime:
        return at.astimezone(place).replace(tzinfo=None, fold=0)

    found: list[tuple[datetime, datetime, timedelta | None]] = []
    at = first
    while at < last:
        wall, end = shown(at), shown(at + (HOUR_MINUTES - 1) * MINUTE)
        if shown(at - MINUTE) == wall - MINUTE and end - wall == (HOUR_MINUTES - 1) * MINUTE:
            found.append((at, wall, None))
        else:
            for number in range(HOUR_MINUTES):
                one = at + number * MINUTE
                gap = shown(one) - shown(one - MINUTE) - MINUTE
                found.append((one, shown(one), max(gap, NOTHING)))
        at += HOUR_MINUTES * MINUTE
    return tuple(found)


def changes(zone: str, first: datetime, last: datetime) -> list[datetime]:
    """The minutes of real time at which the clocks of a zone jump."""
    return [
        instant
        for (instant, wall, gap), (_, earlier, _) in zip(
            [one for one in walls(zone, first, last) if one[2] is not None][1:],
            [one for one in walls(zone, first, last) if one[2] is not None],
            strict=False,
        )
        if gap or wall < earlier
    ]


def numbers(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        start, _, end = base.partition("-")
        if base in ("*", "?"):
            ends = low, high
        elif end:
            ends = number(start, names), number(end, names)
        else:
            ends = number(start, names), high if step else number(start, names)
        if ends[0] > ends[1]:
            found |= {*range(ends[0], high + 1), *range(low, ends[1] + 1)}
        else:
            found |= set(range(ends[0], ends[1] + 1, int(step or 1)))
    return found


def number(text: str, names: tuple[str, ...]) -> int:
    return names.index(text) if text in names else int(text)


def month_day_test(item: str) -> DayTest:
    if item == "l":
        return lambda day: day.day == length(day)
    if item.endswith("w"):
        return lambda day: day == nearest_weekday(day, int(item[:-1]))
    return lambda day: day.day in numbers(item, 1, 31)


def week_day_test(item: str) -> DayTest:
    def sunday_is_0(day: date) -> int:
        return day.isoweekday() % 7

    if item.startswith("l"):
        return lambda day: sunday_is_0(day) == int(item[1:]) % 7 and day.day > length(day) - 7
    if "#" in item:
        name, _, nth = item.partition("#")
        wanted = number(name, WEEKDAYS) % 7
        return lambda day: sunday_is_0(day) == wanted and (day.day - 1) // 7 == int(nth) - 1
    base = item.partition("/")[0]
    wanted_days = {one % 7 for one in numbers(item, 0, 6 if base == "*" else 7 if "7" in base else 6, WEEKDAYS)}
    return lambda day: sunday_is_0(day) in wanted_days


def nearest_weekday(month: date, wanted: int) -> date:
    day = month.replace(day=min(wanted, length(month)))
    weekdays = [
        one for one in (month.replace(day=number) for number in range(1, length(month) + 1)) if one.isoweekday() < 6
    ]
    return min(weekdays, key=lambda one: (abs((one - day).days), one))


def length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def utc(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=timezone.utc)
