"""A rule in real time: an anchor and a fixed interval, whatever clocks on walls do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import bounds, jitter
from jobs.domain.recurrence.words import interval_in_words, modifiers_in_words
from jobs.domain.text import shown

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Every:
    """`Every(timedelta(minutes=15), anchor)`: anchor + n * interval for n >= 0, in start <= occurrence < end.

    The interval is whole seconds, from one to 366 days. The anchor is cut to the second. They never depend on when
    a run started or ended, so nothing drifts. Every 24 hours is not "daily at nine": that is a `Cron`. Raises
    `InvalidRule`.
    """

    interval: timedelta
    anchor: datetime
    start: datetime | None = field(default=None, kw_only=True)
    end: datetime | None = field(default=None, kw_only=True)
    jitter: timedelta = field(default=jitter.NONE, kw_only=True)

    def __post_init__(self) -> None:
        start, end = bounds.checked_bounds(self.start, self.end)
        object.__setattr__(self, "interval", _checked_interval(self.interval))
        object.__setattr__(self, "anchor", bounds.utc(self.anchor, "anchor").replace(microsecond=0))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        object.__setattr__(self, "jitter", jitter.checked_jitter(self.jitter, self.interval))
        if end is not None and self.next_after((start or self.anchor) - bounds.TICK) is None:
            raise InvalidRule("end: the rule has no occurrence before its end", "end")

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence strictly after; None when the rule is exhausted."""
        after = bounds.floor(bounds.utc(instant, "instant"), self.start)
        return bounds.until(self._nth(self._passed(after)), self.end)

    def latest(self, since: datetime, now: datetime) -> datetime | None:
        """The newest occurrence in (since, now]."""
        found = self.newest(1, since, now)
        return found[0] if found else None

    def newest(self, count: int, since: datetime, now: datetime) -> list[datetime]:
        """The newest `count` occurrences in (since, now], oldest first."""
        first, beyond = self._due(since, now)
        return [self.anchor + number * self.interval for number in range(max(first, beyond - count), beyond)]

    def count(self, since: datetime, now: datetime, at_most: int) -> int:
        """How many occurrences are in (since, now], counting no further than `at_most`."""
        first, beyond = self._due(since, now)
        return max(0, min(at_most, beyond - first))

    def upcoming(self, count: int, after: datetime) -> list[datetime]:
        """The first `count` occurrences strictly after, fewer when there are no more."""
        found: list[datetime] = []
        following = self.next_after(after)
        while following is not None and len(found) < count:
            found.append(following)
            following = self.next_after(following)
        return found

    def run_at(self, occurrence: datetime, key: str) -> datetime:
        """When the job of an occurrence is due: with its jitter, which is the same for the same key everywhere."""
        return occurrence + jitter.delay(self.jitter, occurrence, key)

    def describe(self) -> str:
        """In plain English: "every 15 minutes, counted from 2025-01-01 00:00 UTC"."""
        words = interval_in_words(self.interval, self.anchor)
        return f"{words}{modifiers_in_words(self.start, self.end, self.jitter)}"

    def _passed(self, instant: datetime) -> int:
        """How many occurrences there are up to and including the instant; also the number of the next one."""
        return 0 if instant < self.anchor else (instant - self.anchor) // self.interval + 1

    def _due(self, since: datetime, now: datetime) -> tuple[int, int]:
        """The number of the first occurrence in (since, now], and the one beyond the last."""
        until = bounds.utc(now, "now")
        if self.end is not None:
            until = min(until, self.end - bounds.TICK)
        return self._passed(bounds.floor(bounds.utc(since, "since"), self.start)), self._passed(until)

    def _nth(self, number: int) -> datetime | None:
        try:
            return self.anchor + number * self.interval
        except OverflowError:
            return None


def _checked_interval(value: object) -> timedelta:
    if not isinstance(value, timedelta) or value % SHORTEST or not SHORTEST <= value <= LONGEST:
        raise InvalidRule(
            f"interval: {shown(value)}: give a timedelta of whole seconds, from one second to 366 days", "interval"
        )
    return value
