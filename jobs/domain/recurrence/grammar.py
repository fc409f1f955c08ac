"""The strict door for cron expressions: five fields or a macro, or one error that names the field.

croniter's own check takes far more: a sixth field of seconds, steps that never step, dates that never come.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence.field_text import read_field
from jobs.domain.recurrence.fields import DAY_OF_MONTH, DAY_OF_WEEK, KINDS, Field

LONGEST = 255
"""Characters; reading 20 kB of list items took croniter half a second."""

MACROS = {
    "@annually": "0 0 1 1 *",
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@midnight": "0 0 * * *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@yearly": "0 0 1 1 *",
}
"""Vixie cron's, but for `@reboot`, which is no time."""

DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Grammar:
    """An expression that was understood."""

    minute: Field
    hour: Field
    day_of_month: Field
    month: Field
    day_of_week: Field

    @property
    def text(self) -> str:
        """The same rule in lower case and numbers, which is what croniter reads."""
        fields = (self.minute, self.hour, self.day_of_month, self.month, self.day_of_week)
        return " ".join(field.text for field in fields)

    @property
    def is_open(self) -> bool:
        """Whether it follows the wall clock in real time: Vixie cron's rule for a `*` in the minute or hour."""
        return self.minute.has_star or self.hour.has_star

    @property
    def shortest_spacing_minutes(self) -> int:
        """Least time between two of its wall times, if it ran every day."""
        times = sorted(hour * 60 + minute for hour in self.hour.values for minute in self.minute.values)
        return min(later - earlier for earlier, later in itertools.pairwise([*times, times[0] + DAY_MINUTES]))


def read_expression(expression: object) -> Grammar:
    """Raises `InvalidRule` for everything that is not five fields or a macro."""
    texts = _split(expression)
    fields = [read_field(kind, text) for kind, text in zip(KINDS, texts, strict=True)]
    grammar = Grammar(*fields)
    _check_days(grammar.day_of_month, grammar.day_of_week)
    return grammar


def _split(expression: object) -> list[str]:
    if not isinstance(expression, str):
        raise InvalidRule(f"expression: give text, not {type(expression).__name__}")
    if not expression.isascii():
        raise InvalidRule("expression: only ASCII characters are allowed")
    if len(expression) > LONGEST:
        raise InvalidRule(f"expression: at most {LONGEST} characters, got {len(expression)}")
    if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in expression):
        raise InvalidRule("expression: line breaks and control characters are not allowed")
    text = expression.strip(" \t").lower()
    if not text:
        raise InvalidRule("expression: it is empty")
    if text.startswith("@"):
        if text not in MACROS:
            raise InvalidRule(f"expression: unknown macro {text!r}; use one of {', '.join(MACROS)}")
        text = MACROS[text]
    fields = text.split()
    if "=" in fields[0]:
        raise InvalidRule("expression: time zone prefixes are not supported; give the rule a timezone instead")
    if len(fields) > len(KINDS):
        raise InvalidRule(
            f"expression: {len(fields)} fields given; seconds and year fields are not supported, "
            "use 5 fields or an interval"
        )
    if len(fields) < len(KINDS):
        names = " ".join(kind.name for kind in KINDS)
        raise InvalidRule(f"expression: 5 fields required ({names}), got {len(fields)}")
    return fields


def _check_days(month_day: Field, week_day: Field) -> None:
    """Refuse what cron dialects read in different ways, or croniter reads wrongly."""
    names = f"{DAY_OF_MONTH.name} and {DAY_OF_WEEK.name}"
    if week_day.specials:
        if len(week_day.specials) < len(week_day.items):
            raise DAY_OF_WEEK.error('"#" and "L<n>" weekdays cannot be mixed with plain weekdays')
        if not month_day.is_free:
            raise InvalidRule(f'{names}: "#" and "L<n>" weekdays cannot be combined with a {DAY_OF_MONTH.name}')
    if month_day.text.endswith("w") and not week_day.is_free:
        raise InvalidRule(f"{names}: W cannot be combined with a {DAY_OF_WEEK.name}")
    both = not month_day.is_free and not week_day.is_free
    if both and (month_day.has_star or week_day.has_star):
        raise InvalidRule(
            f'{names}: "*/n" in one day field together with a restricted other day field is ambiguous; list the days'
        )
