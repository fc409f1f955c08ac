"""Declare schedules in code: `cron(...)`, `every(...)` and factories, for `@job(schedule=...)`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings as django_settings

from jobs.domain.declaration import Declaration, cron_rule, declaration, every_rule
from jobs.domain.factories import Factory, Function, factories
from jobs.domain.option_checks import checked_text
from jobs.domain.options import MAX_TASK_NAME

DAY, HOUR, MINUTE = 86_400, 3_600, 60


def cron(
    expression: str,
    *,
    timezone: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    jitter: timedelta | float = 0,
    **options: Any,
) -> Declaration:
    """A rule by the wall clock of `timezone` (default: the site's), for `@job(schedule=...)`.

    `name` (needed when a task has several), `args` and `kwargs` of its jobs, `overlap` (skip, allow, queue_one,
    cancel_previous), `catch_up` (coalesce, skip, all) and `catch_up_cap`, `start` and `end` (half-open), `jitter`
    (seconds), and the options of `task.using(...)`. Raises InvalidRule and InvalidOption.
    """
    zone = timezone or django_settings.TIME_ZONE or "UTC"
    return declaration(cron_rule(expression, zone, start, end, jitter), **options)


def every(
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    anchor: datetime | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    jitter: timedelta | float = 0,
    **options: Any,
) -> Declaration:
    """A rule in real time: anchor + n * interval, from one second to 366 days. The other keywords as in `cron`.

    The anchor is `anchor`, else `start`, else the instant at which the schedule is first seen.
    """
    interval = days * DAY + hours * HOUR + minutes * MINUTE + seconds
    return declaration(every_rule(interval, anchor, start, end, jitter), **options)


def factory(task: Any, *, name: str | None = None) -> Callable[[Function], Factory]:
    """Register `f(scheduled_for) -> (args, kwargs) | None`, which gives a schedule of `task` its arguments."""

    def register(function: Function) -> Factory:
        dotted = name or f"{function.__module__}.{function.__qualname__}"
        checked = checked_text(dotted, "name", MAX_TASK_NAME)
        return factories.add(Factory(checked, task if isinstance(task, str) else task.name, function))

    return register
