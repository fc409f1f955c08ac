"""The pure step of a schedule from one instant to the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.domain.recurrence.bounds import TICK
from jobs.domain.recurrence.catch_up import CAP, CatchUp, Due, due_occurrences
from jobs.domain.recurrence.plain import PlainRule, rule_from


@dataclass(frozen=True, slots=True)
class Timing:
    """What the step depends on. Instants are aware UTC."""

    rule: PlainRule
    planned_at: datetime | None = None
    """The next instant, as the schedule remembers it."""
    last_occurrence_at: datetime | None = None
    """The newest instant that was dealt with: nothing at or before it fires again, whatever the rule says."""
    not_before: datetime | None = None
    """The end of a pause: what lay before it was not missed."""
    catch_up: CatchUp = CatchUp.COALESCE
    catch_up_cap: int = CAP
    skip_next: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    occurrences: tuple[datetime, ...] = ()
    """To make jobs of, oldest first."""
    left_out: datetime | None = None
    """The one that a person asked to skip."""
    missed: int = 0
    """Others that were due and leave no record of their own, counted up to 100."""
    missed_more: bool = False
    reached: datetime | None = None
    """What `last_occurrence_at` is from now on; None: nothing was due."""
    next_at: datetime | None = None
    """None: the rule is exhausted."""


def advance(timing: Timing, now: datetime) -> Step:
    """What is due at `now`, and when to look again. Raises InvalidRule."""
    rule = rule_from(timing.rule)
    resumed = None if timing.not_before is None else timing.not_before - TICK  # at its very end a pause is over
    dealt_with = max((at for at in (timing.last_occurrence_at, resumed) if at is not None), default=None)
    planned = timing.planned_at
    if planned is None or (dealt_with is not None and planned <= dealt_with):
        # Nothing was promised: not even what is due at this very instant, unless a pause has ended meanwhile.
        since = now if resumed is None else resumed
        return Step(next_at=rule.next_after(since if dealt_with is None else max(since, dealt_with)))
    # Whatever lies before the planned instant was dealt with when it was planned.
    due = due_occurrences(rule, planned - TICK, now, timing.catch_up, timing.catch_up_cap, planned=planned)
    left_out = planned if timing.skip_next and due.reached is not None else None
    made = tuple(at for at in due.occurrences if at != left_out)
    return Step(made, left_out, _missed(due, left_out), due.skipped_more, due.reached, due.next_at)


def _missed(due: Due, left_out: datetime | None) -> int:
    """Without those that are recorded one by one: what a person asked to skip, and the newest if all were too late."""
    recorded = {left_out, None if due.occurrences else due.reached} - {None, *due.occurrences}
    return due.skipped if due.skipped_more else due.skipped - len(recorded)
