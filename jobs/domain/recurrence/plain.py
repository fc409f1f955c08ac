"""Rules as plain values, one per column, and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence.cron import Cron
from jobs.domain.recurrence.every import Every

Rule = Cron | Every


@dataclass(frozen=True, slots=True)
class PlainRule:
    """What a row keeps: an expression and a timezone, or an interval and an anchor; the unused pair is empty."""

    expression: str = ""
    timezone: str = ""
    interval_seconds: int | None = None
    anchor_at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_seconds: int = 0

    @property
    def timing(self) -> tuple[object, ...]:
        """What the instants depend on: an edit that leaves it alone must leave the next instant alone."""
        return (
            self.expression,
            self.timezone,
            self.interval_seconds,
            self.anchor_at,
            self.start_at,
            self.end_at,
        )


def to_plain(rule: Rule) -> PlainRule:
    jitter_seconds = rule.jitter // timedelta(seconds=1)
    if isinstance(rule, Cron):
        return PlainRule(
            expression=rule.expression,
            timezone=rule.timezone,
            start_at=rule.start,
            end_at=rule.end,
            jitter_seconds=jitter_seconds,
        )
    return PlainRule(
        interval_seconds=rule.interval // timedelta(seconds=1),
        anchor_at=rule.anchor,
        start_at=rule.start,
        end_at=rule.end,
        jitter_seconds=jitter_seconds,
    )


def rule_from(plain: PlainRule) -> Rule:
    """The rule; raises `InvalidRule` for whatever an edit by hand has left in the columns."""
    window = _seconds(plain.jitter_seconds, "jitter")
    if plain.interval_seconds is None:
        if plain.anchor_at is not None and not plain.expression:
            raise InvalidRule("interval: it is missing", "interval")
        return Cron(plain.expression, plain.timezone, start=plain.start_at, end=plain.end_at, jitter=window)
    if plain.expression:
        raise InvalidRule("expression: a rule has an expression or an interval, not both")
    if plain.anchor_at is None:
        raise InvalidRule("anchor: an interval needs the instant it is counted from", "anchor")
    interval = _seconds(plain.interval_seconds, "interval")
    return Every(interval, plain.anchor_at, start=plain.start_at, end=plain.end_at, jitter=window)


def _seconds(value: int, part: str) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, TypeError) as error:
        raise InvalidRule(f"{part}: that is no number of seconds that a rule may have", part) from error
