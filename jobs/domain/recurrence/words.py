"""Rules in plain English, for people who do not read cron."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from jobs.domain.recurrence.fields import Field
from jobs.domain.recurrence.grammar import Grammar
from jobs.domain.text import instant_text

MOST_TIMES = 8
"""More times of day than these are said as minutes and hours."""

MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("first", "second", "third", "fourth", "fifth")
SUFFIXES = {"2": "nd", "3": "rd"}
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def cron_in_words(grammar: Grammar, timezone: str) -> str:
    """ "at 07:00, Monday to Friday, Europe/Berlin time"."""
    parts = [_times(grammar.minute, grammar.hour), *_days(grammar)]
    place = timezone if timezone in ("UTC", "Etc/UTC") else f"{timezone} time"
    return ", ".join([*parts, place])


def interval_in_words(interval: timedelta, anchor: datetime) -> str:
    """ "every 15 minutes, counted from 2025-01-01 00:00:00 UTC"."""
    seconds = interval // timedelta(seconds=1)
    # One day is said as 24 hours: it is not the same time of day for ever.
    unit, size = next((unit, size) for unit, size in UNITS if seconds % size == 0 and (unit, seconds) != ("day", size))
    count = seconds // size
    often = f"every {unit}" if count == 1 else f"every {count} {unit}s"
    return f"{often}, counted from {instant_text(anchor)}"


def modifiers_in_words(start: datetime | None, end: datetime | None, jitter: timedelta) -> str:
    words = f", from {instant_text(start)} on" if start else ""
    words += f", until before {instant_text(end)}" if end else ""
    return words + (f", delayed by up to {jitter // timedelta(seconds=1)} s" if jitter else "")


def clock_hint(grammar: Grammar) -> str:
    """For a rule whose `*` or `*/n` loses a run, or doubles one, where its author may want exactly one; else ""."""
    minute, hour = grammar.minute, grammar.hour
    if not grammar.is_open or hour.is_free:
        return ""
    fields = (_spelt_out(minute), _spelt_out(hour), grammar.day_of_month.text, grammar.month.text)
    once = " ".join([*fields, grammar.day_of_week.text])
    return (
        "When clocks change, this rule does not run at the times they skip, and runs twice at those they repeat. "
        f"For one run each, write {once}"
    )


def _spelt_out(field: Field) -> str:
    kind = field.kind
    return f"{kind.lowest}-{kind.highest}" if field.is_free else ",".join(map(str, field.values))


def listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _times(minute: Field, hour: Field) -> str:
    times = [f"{at:02}:{past:02}" for at in hour.values for past in minute.values]
    if not minute.is_free and not hour.is_free and len(times) <= MOST_TIMES:
        return f"at {listed(times)}"
    pace = _pace(minute, "minute", 60)
    often = pace or f"at {_counted('minute', minute.values)}"
    if hour.is_free:
        return often if pace else f"{often} of every hour"
    hours = _pace(hour, "hour", 24) or f"the {_counted('hour', hour.values)}"
    return f"{often} {'in' if pace else 'of'} {hours}"


def _pace(field: Field, unit: str, size: int) -> str:
    """ "every 15 minutes", where the field is `*` or a step that divides the hour or the day evenly."""
    if field.is_free:
        return f"every {unit}"
    star, _, step = field.text.partition("/")
    if star != "*" or not step.isdigit() or size % int(step):
        return ""
    if unit == "hour":
        return f"every {step}{SUFFIXES.get(step, 'th')} hour" if step != "1" else "every hour"
    return f"every {step} {unit}s" if int(step) > 1 else f"every {unit}"


def _days(grammar: Grammar) -> Iterable[str]:
    month_day, week_day, month = grammar.day_of_month, grammar.day_of_week, grammar.month
    months = _ranges(month.values, dict(enumerate(MONTH_NAMES, 1)))
    if week_day.is_free and not month_day.specials and len(month_day.values) == len(month.values) == 1:
        yield f"on {month_day.values[0]} {months}"
        return
    dated = [] if month_day.is_free else [_month_days(month_day)]
    named = [] if week_day.is_free else [_week_days(week_day)]
    if dated and named:
        yield f"{dated[0]} and also {named[0]}"
    else:
        yield from dated or named
    if not month.is_free:
        yield f"in {months}"
    elif not dated and not named and not grammar.hour.is_free:
        yield "every day"


def _month_days(field: Field) -> str:
    said = [f"on {_counted('day', field.values)} of the month"] if field.values else []
    for special in field.specials:
        day = special.removesuffix("w")
        said.append("on the last day of the month" if special == "l" else f"on the weekday nearest to day {day}")
    return listed(said)


def _week_days(field: Field) -> str:
    if not field.specials:
        # From Monday on, as people say it: "Saturday and Sunday".
        from_monday = sorted((value - 1) % 7 for value in field.values)
        said = _ranges(from_monday, dict(enumerate([*DAY_NAMES[1:], DAY_NAMES[0]])))
        return f"every {said}" if len(from_monday) == 1 else said
    days = []
    for special in field.specials:
        day, _, nth = special.partition("#")
        which = ORDINALS[int(nth) - 1] if nth else "last"
        days.append(f"the {which} {DAY_NAMES[int(day.removeprefix('l'))]}")
    return f"on {listed(days)} of the month"


def _counted(unit: str, values: Sequence[int]) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {_ranges(values, {value: str(value) for value in values})}"


def _ranges(values: Sequence[int], names: dict[int, str]) -> str:
    """ "Monday to Friday and Sunday": runs of three and more are said by their ends."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    said: list[str] = []
    for run in runs:
        said += [f"{names[run[0]]} to {names[run[-1]]}"] if len(run) > 2 else [names[value] for value in run]
    return listed(said)
