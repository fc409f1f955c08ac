"""A rule by the wall clock of a place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import bounds, jitter, search
from jobs.domain.recurrence.grammar import Grammar, read_expression
from jobs.domain.recurrence.shift import change_of_day
from jobs.domain.recurrence.wall_calendar import matches_some_date
from jobs.domain.recurrence.wall_clock import WallClock
from jobs.domain.recurrence.words import clock_hint, cron_in_words, modifiers_in_words
from jobs.domain.recurrence.zone import zone_of

LATER_ON = datetime(2040, 1, 1, tzinfo=timezone.utc)
"""Past the last change of law that the tz database foresees for most places (its explicit transitions end in 2037)."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields or a macro, read in an IANA zone: `Cron("0 7 * * mon-fri", "Europe/Berlin")`.

    Occurrences are aware UTC instants on whole seconds, in start <= occurrence < end. Raises `InvalidRule` for what
    cannot be read and for what never fires. Instants before 1970 count as 1970, later ones than 9000 have no next.
    """

    expression: str
    timezone: str
    start: datetime | None = field(default=None, kw_only=True)
    end: datetime | None = field(default=None, kw_only=True)
    jitter: timedelta = field(default=jitter.NONE, kw_only=True)
    _grammar: Grammar = field(init=False, repr=False, compare=False)
    _zone: ZoneInfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        grammar = read_expression(self.expression)
        start, end = bounds.checked_bounds(self.start, self.end)
        object.__setattr__(self, "_grammar", grammar)
        object.__setattr__(self, "_zone", zone_of(self.timezone))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        spacing = timedelta(minutes=grammar.shortest_spacing_minutes)
        object.__setattr__(self, "jitter", jitter.checked_jitter(self.jitter, spacing))
        self._refuse_the_impossible()

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence strictly after; None when the rule is exhausted."""
        return self._step()(bounds.utc(instant, "instant"))

    def latest(self, since: datetime, now: datetime) -> datetime | None:
        """The newest occurrence in (since, now]."""
        return search.latest(self._step(), bounds.utc(since, "since"), bounds.utc(now, "now"))

    def newest(self, count: int, since: datetime, now: datetime) -> list[datetime]:
        """The newest `count` occurrences in (since, now], oldest first."""
        return search.newest(self._step(), count, bounds.utc(since, "since"), bounds.utc(now, "now"))

    def count(self, since: datetime, now: datetime, at_most: int) -> int:
        """How many occurrences are in (since, now], counting no further than `at_most`: each costs a step."""
        return search.count(self._step(), bounds.utc(since, "since"), bounds.utc(now, "now"), at_most)

    def upcoming(self, count: int, after: datetime) -> list[datetime]:
        """The first `count` occurrences strictly after, fewer when there are no more."""
        return search.upcoming(self._step(), count, bounds.utc(after, "after"))

    def run_at(self, occurrence: datetime, key: str) -> datetime:
        """When the job of an occurrence is due: with its jitter, which is the same for the same key everywhere."""
        return occurrence + jitter.delay(self.jitter, occurrence, key)

    def describe(self) -> str:
        """In plain English: "at 07:00, Monday to Friday, Europe/Berlin time"."""
        return f"{cron_in_words(self._grammar, self.timezone)}{modifiers_in_words(self.start, self.end, self.jitter)}"

    def clock_change(self, occurrence: datetime) -> timedelta:
        """By how much clocks jump on the local day of an occurrence: forward is positive, zero is usual."""
        instant = bounds.utc(occurrence, "occurrence").replace(tzinfo=None)
        return change_of_day(self._zone, instant)

    def hint(self) -> str:
        """What people should know before they save it: that it may run never or twice when clocks change; or ""."""
        offsets = {datetime(2030, month, 1, tzinfo=self._zone).utcoffset() for month in range(1, 13)}
        return clock_hint(self._grammar) if len(offsets) > 1 else ""

    def _step(self) -> search.Step:
        clock = WallClock(self._grammar, self._zone)
        return lambda after: bounds.until(clock.next_after(bounds.floor(after, self.start)), self.end)

    def _refuse_the_impossible(self) -> None:
        if not matches_some_date(self._grammar):
            raise InvalidRule("expression: it never matches any date (day-of-month and month)")
        clock = WallClock(self._grammar, self._zone)
        # Only times that the zone's own gap skips each year; a fixed time is made up for just after the gap.
        if self._grammar.is_open and clock.next_after(LATER_ON) is None:
            raise InvalidRule(f"expression: it matches only times that clocks in {self.timezone} skip")
        if self.start is not None and self.end is not None and self.next_after(self.start - bounds.TICK) is None:
            raise InvalidRule("end: the rule has no occurrence between its start and its end", "end")
