"""How a schedule reads: its state in a sentence, its instants by two clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron, Rule
from jobs.models import Schedule

OVERDUE = timedelta(seconds=120)
"""Longer than a scheduler leaves an occurrence to others that may know its task."""


@dataclass(frozen=True, slots=True)
class State:
    name: str
    """active, paused, finished, retired or problem."""
    label: str
    detail: str
    """More about it, after the label; may be empty."""
    sentence: str
    """What it means, for the schedule's own page; empty when there is nothing to say."""

    @property
    def words(self) -> str:
        """A short line, for a table."""
        return f"{self.label}{': ' if self.name == 'problem' else ' '}{self.detail}" if self.detail else self.label


@dataclass(frozen=True, slots=True)
class Planned:
    """One instant of a rule, as people read it."""

    at: datetime
    here: str
    """By the site's clock."""
    there: str
    """By the clock of the schedule's zone; empty when that is the site's."""
    note: str
    """What is special about that day; mostly empty."""


def state_of(row: Schedule, now: datetime) -> State:
    if row.retired:
        return State("retired", _("not declared any more"), "", _("The code declares it no longer: it fires no more."))
    if row.is_paused(now):
        return _paused(row)
    if row.problem:
        return _problem(row)
    if row.is_exhausted:
        return State("finished", _("finished"), "", _("It is finished: its rule has no more instants."))
    if row.next_run_at is not None and row.next_run_at < now - OVERDUE:
        return State("problem", _("overdue"), "", _("Its next instant has passed: is a scheduler running?"))
    if row.skip_next:
        by = _(" by %s") % row.skipped_by if row.skipped_by else ""
        sentence = _("Its next instant is skipped%s: no job is made for it.") % by
        return State("active", _("active"), _("(the next one is skipped%s)") % by, sentence)
    if row.next_run_at is None:
        return State("active", _("active"), _("(not planned yet)"), _("A scheduler plans it at its next look."))
    return State("active", _("active"), "", "")


def _paused(row: Schedule) -> State:
    until = row.paused_until if row.active else None
    details = [
        _("until %s") % clock(until, get_current_timezone()) if until else "",
        _("by %s") % row.paused_by if row.paused_by else "",
        f"({row.reason})" if row.reason else "",
    ]
    detail = " ".join(filter(None, details))
    sentence = _("It is paused %s") % detail
    return State(
        "paused", _("paused"), detail, f"{sentence.strip()}. {_('What falls into a pause is not made up for.')}"
    )


def _problem(row: Schedule) -> State:
    since = clock(row.problem_since, get_current_timezone()) if row.problem_since else ""
    said = _("Problem since %(since)s: %(problem)s") % {"since": since, "problem": row.problem}
    then = _("It goes on with its next instant.") if row.next_run_at else _("It does not fire until that is mended.")
    return State("problem", _("problem"), row.problem, f"{said.rstrip('.')}. {then}")


def zone_of_rule(rule: Rule) -> tzinfo:
    return ZoneInfo(rule.timezone) if isinstance(rule, Cron) else timezone.utc


def upcoming(row: Schedule, now: datetime, count: int) -> list[datetime]:
    """The next instants, oldest first, as they will be if nobody edits it; none while it is paused without an end.

    Raises InvalidRule.
    """
    if row.retired or not row.active or row.is_exhausted:
        return []
    since = max(at for at in (now, row.last_occurrence_at, row.paused_until) if at is not None)
    planned = row.next_run_at
    if planned is None or row.is_paused(now):
        return row.rule.upcoming(count, since)
    return [planned, *row.rule.upcoming(count - 1, max(planned, since))][:count]


def planned(rule: Rule, instants: list[datetime], here: tzinfo) -> Iterator[Planned]:
    there = zone_of_rule(rule) if isinstance(rule, Cron) else here
    for at in instants:
        first, second = clock(at, here), clock(at, there)
        change = rule.clock_change(at) if isinstance(rule, Cron) else timedelta(0)
        yield Planned(at, first, "" if first == second else second, change_in_words(change))


def change_in_words(change: timedelta) -> str:
    """ "clocks go forward by 1 h on that day"; empty for none."""
    if not change:
        return ""
    hours, minutes = divmod(abs(change) // timedelta(minutes=1), 60)
    by = " ".join([f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes))
    if change > timedelta(0):
        return _("clocks go forward by %s on that day") % by
    return _("clocks go back by %s on that day") % by


def by_two_clocks(row: Schedule, at: datetime | None, here: tzinfo) -> str:
    """By the site's clock, and in brackets by the schedule's where that differs; empty for no instant."""
    if at is None:
        return ""
    first, second = clock(at, here), clock(at, _zone_of_row(row) or here)
    if first == second:
        return first
    same_day = first[:14] == second[:14]
    return f"{first} ({second[15:] if same_day else second})"


def clock(at: datetime, zone: tzinfo) -> str:
    """ "Wed 2026-12-02 07:00 CET", with seconds only where there are some."""
    local = at.astimezone(zone)
    return local.strftime("%a %Y-%m-%d %H:%M:%S %Z" if local.second else "%a %Y-%m-%d %H:%M %Z")


def _zone_of_row(row: Schedule) -> tzinfo | None:
    try:
        return zone_of_rule(row.rule) if row.expression else None
    except InvalidRule:
        return None
