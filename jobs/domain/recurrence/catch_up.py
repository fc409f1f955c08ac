"""Which occurrences to make jobs of, after some or many have become due."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.domain.errors import InvalidOption
from jobs.domain.exhaustive import assert_never
from jobs.domain.recurrence.plain import Rule

COUNT_LIMIT = 100
"""Missed occurrences are counted up to here, so that a year of missed minutes costs no more than an hour of them."""

GRACE = timedelta(seconds=60)
CAP = 10
LARGEST_CAP = 100


class CatchUp(str, enum.Enum):
    COALESCE = "coalesce"
    """One job, for the newest."""
    SKIP = "skip"
    """One job for the newest if it is hardly late, else none."""
    ALL = "all"
    """A job each, for the newest few, oldest first."""

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class Due:
    """What one look at a schedule found."""

    occurrences: tuple[datetime, ...]
    """Those to make jobs of, oldest first."""
    skipped: int
    """How many others were due, counted up to 100."""
    skipped_more: bool
    """Whether it were more than that."""
    reached: datetime | None
    """The newest that was due, made or not: the schedule's last instant from now on. None: nothing was due."""
    next_at: datetime | None
    """The next instant; None when the rule is exhausted."""

    @property
    def skipped_text(self) -> str:
        return f"{COUNT_LIMIT}+" if self.skipped_more else str(self.skipped)


def due_occurrences(
    rule: Rule,
    last: datetime,
    now: datetime,
    catch_up: CatchUp = CatchUp.COALESCE,
    cap: int = CAP,
    *,
    planned: datetime | None = None,
    grace: timedelta = GRACE,
) -> Due:
    """What is due in (last, now].

    `planned`, the next instant that the schedule remembers, is due as it stands, even if the rule names it no
    longer; nothing before it is due, so that a pause leaves nothing to catch up.
    """
    if not 1 <= cap <= LARGEST_CAP:
        raise InvalidOption(f"catch_up_cap must be a whole number from 1 to {LARGEST_CAP}")
    if planned is not None and planned > max(now, last):
        return Due((), 0, False, None, planned)
    remembered = [planned] if planned is not None and planned > last else []
    since = max(last, planned) if planned is not None else last
    reached = rule.latest(since, now) or (remembered[0] if remembered else None)
    following = rule.next_after(max(now, since))
    if reached is None:
        return Due((), 0, False, None, following)
    wanted = _wanted(catch_up, cap, is_late=now - reached > grace)
    made = (reached,) if wanted == 1 else _newest(rule, remembered, since, now, wanted)
    total = len(remembered) + rule.count(since, now, at_most=COUNT_LIMIT + wanted + 1)
    skipped = total - len(made)
    return Due(made, min(skipped, COUNT_LIMIT), skipped > COUNT_LIMIT, reached, following)


def _newest(rule: Rule, remembered: list[datetime], since: datetime, now: datetime, count: int) -> tuple[datetime, ...]:
    due = [*remembered, *rule.newest(count, since, now)]
    return tuple(due[max(0, len(due) - count) :])


def _wanted(catch_up: CatchUp, cap: int, *, is_late: bool) -> int:
    """Of how many to make jobs, at most."""
    match catch_up:
        case CatchUp.COALESCE:
            return 1
        case CatchUp.SKIP:
            return 0 if is_late else 1
        case CatchUp.ALL:
            return cap
    assert_never(catch_up)
