"""The rule for nights on which clocks change: Vixie cron's, as Debian's cron.c has it, from wall times to instants.

A fixed time (no `*` in minute or hour) fires once: just after the gap that skips it, or the first time it is shown.
Other rules follow the wall clock in real time: what is skipped is lost, what is shown twice fires twice. A jump of 3
hours or more is a change of calendar (Vixie counts 180 minutes and more so; Apia's 24 hours in 2011, Casey's 3 in
2009): the times inside it do not exist for anybody.

The outcome is strictly increasing. For fixed times, going from wall time to instant never goes back, and nothing at
or before the present wall time lies ahead. For the others, a match in the second pass of a fold has its twin in the
first, so only a present instant within a fold needs a closer look.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

from jobs.domain.recurrence.grammar import Grammar
from jobs.domain.recurrence.shift import SECOND, local, offsets_at, shift_at
from jobs.domain.recurrence.wall_calendar import WallCalendar

CALENDAR_CHANGE = timedelta(hours=3)
HORIZON = timedelta(days=50 * 366)
"""A rule whose every time falls into a gap would be looked for until the end of the calendar."""

EARLIEST = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as all instants in here
"""Instants before the tz database's reliable start count as this one."""

LATEST = datetime(9000, 1, 1)  # noqa: DTZ001
"""So that no sum leaves the calendar."""


class WallClock:
    """Finds instants for one rule in one zone. Cheap to make, and not for sharing between threads."""

    def __init__(self, grammar: Grammar, zone: tzinfo) -> None:
        self._zone = zone
        self._is_open = grammar.is_open
        self._calendar = WallCalendar(grammar)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first instant strictly after, in UTC; None when none comes within 50 years."""
        # Whole seconds are enough: matches lie on whole minutes of the wall clock, offsets on whole seconds.
        after = instant.astimezone(timezone.utc).replace(tzinfo=None, microsecond=0)
        if after >= LATEST:
            return None
        found = self._next(max(after, EARLIEST - SECOND))
        return None if found is None else found.replace(tzinfo=timezone.utc)

    def _next(self, after: datetime) -> datetime | None:
        wall, is_second_pass = local(self._zone, after)
        before_offset, after_offset = offsets_at(self._zone, wall)
        if before_offset > after_offset:
            fold = shift_at(self._zone, wall, before_offset, after_offset)
            if self._is_open:
                repeated = self._next_in_fold(wall, is_second_pass, fold.head, fold.tail)
                if repeated is not None:
                    match, is_second_match = repeated
                    return match - (after_offset if is_second_match else before_offset)
            if is_second_pass:
                wall = fold.tail - SECOND
        return self._next_beyond(wall, after)

    def _next_in_fold(
        self, wall: datetime, is_second_pass: bool, head: datetime, tail: datetime
    ) -> tuple[datetime, bool] | None:
        """The next match inside the fold that `wall` is in, and whether it is one of the second pass."""
        match = self._calendar.next_after(wall)
        if match is not None and match < tail:
            return match, is_second_pass
        if is_second_pass:
            return None
        match = self._calendar.next_after(head - SECOND)
        return (match, True) if match is not None and match < tail else None

    def _next_beyond(self, wall: datetime, after: datetime) -> datetime | None:
        """The next match that is plain, or in the first pass of a fold, or in a gap that is made up for."""
        horizon = wall + HORIZON
        while True:
            match = self._calendar.next_after(wall)
            if match is None or match > horizon:
                return None
            before_offset, after_offset = offsets_at(self._zone, match)
            if before_offset >= after_offset:
                return match - before_offset
            gap = shift_at(self._zone, match, before_offset, after_offset)
            # Never behind us, even in a zone whose clocks go back just after they went forward.
            if not self._is_open and gap.gap < CALENDAR_CHANGE and gap.at > after:
                return gap.at
            wall = gap.head - SECOND
