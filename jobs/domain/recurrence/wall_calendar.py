"""The wall times that a cron expression matches, without any zone: croniter's part.

croniter gets naive times only. Given aware ones it fires twice where clocks go back, invents fires where they go
forward, and loses some where they shift by half an hour.
"""

from __future__ import annotations

from datetime import datetime

from croniter import CroniterBadDateError, croniter

from jobs.domain.recurrence.grammar import Grammar

SOMEWHERE = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times have no zone
"""Any pattern of dates comes round within 28 years, and within 40 across a century without its leap day."""


class WallCalendar:
    """Not for sharing between threads: croniter remembers where it stands."""

    def __init__(self, grammar: Grammar) -> None:
        self._croniter = croniter(grammar.text, SOMEWHERE, ret_type=datetime)

    def next_after(self, wall: datetime) -> datetime | None:
        """The first match strictly after; None when there is none within croniter's 50 years."""
        try:
            return self._croniter.get_next(datetime, start_time=wall)
        except CroniterBadDateError:
            return None


def matches_some_date(grammar: Grammar) -> bool:
    return WallCalendar(grammar).next_after(SOMEWHERE) is not None
