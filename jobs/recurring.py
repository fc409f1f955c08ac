"""What callers do with schedules that are rows: store, delete, pause, skip, run now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.conf import jobs_settings
from jobs.domain.declaration import Declaration, cron_rule, declaration, every_rule, refuse_submit_options
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.errors import InvalidOption, JobsError, NotStorable, ScheduleNotFound
from jobs.domain.factories import Factory, factories
from jobs.domain.options import MAX_META_BYTES, require_aware
from jobs.domain.recurrence.plain import PlainRule
from jobs.domain.registry import registry
from jobs.domain.strict_json import dumps
from jobs.domain.task import TaskDefinition
from jobs.domain.text import clean_text, shown
from jobs.engine.hints import hint_due
from jobs.models import Job, Schedule
from jobs.models.clock import database_now
from jobs.store.database import database
from jobs.store.submit import Submission, submit
from jobs.submission import Submitter


def schedule_recurring(
    task_or_factory: Any,
    *,
    every: timedelta | float | None = None,
    cron: str | None = None,
    timezone: str | None = None,
    name: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    allow_overlap: bool = False,
    **rule_options: Any,
) -> str:
    """Store a schedule, or change the one of that name, in the caller's transaction; gives its name.

    Give `every` (seconds or a timedelta) or `cron`. More keywords: `overlap`, `catch_up`, `catch_up_cap`, `start`,
    `end`, `anchor`, `jitter`. Raises InvalidRule, InvalidOption, InvalidArguments, TaskNotFound.
    """
    if (every is None) == (cron is None):
        raise InvalidOption("give every=... or cron=..., one of them")
    bounds = {key: rule_options.pop(key, None) for key in ("start", "end")}
    jitter = rule_options.pop("jitter", 0)
    anchor = rule_options.pop("anchor", None)
    if cron is not None:
        rule = cron_rule(cron, timezone or django_settings.TIME_ZONE or "UTC", jitter=jitter, **bounds)
    else:
        assert every is not None
        rule = every_rule(every, anchor, jitter=jitter, **bounds)
    if allow_overlap:
        rule_options.setdefault("overlap", "allow")
    made_by = task_or_factory if isinstance(task_or_factory, Factory) else None
    definition = registry.get(made_by.task) if made_by else definition_of(task_or_factory)
    declared = declaration(rule, name=name or (made_by or definition).name, args=args, kwargs=kwargs, **rule_options)
    declared = replace(declared, options=dict(options or {}))
    refuse_submit_options(declared.options)
    try:
        with transaction.atomic(using=_alias()):
            _store(declared, definition, made_by)
    except IntegrityError:  # somebody else has just made it, and has committed
        with transaction.atomic(using=_alias()):
            _store(declared, definition, made_by)
    return declared.name


def _store(declared: Declaration, definition: TaskDefinition, made_by: Factory | None) -> None:
    """Locks the row of that name, so that a pause that was committed just before is kept."""
    row = Schedule.objects.using(_alias()).select_for_update().filter(name=declared.name).first()
    if row is not None and row.declared and not row.retired:
        raise InvalidOption(f"schedule {declared.name!r} is declared in code: change it there, or give another name")
    row = row or Schedule(name=declared.name)
    row.declared = row.retired = False
    fill(row, definition, declared, made_by)
    row.save(using=_alias())


def cancel_recurring(name: str) -> bool:
    """Delete the schedule of that name; its jobs stay. Whether there was one. Raises InvalidOption for one that is
    declared in code, which would come back: pause it."""
    row = Schedule.objects.using(_alias()).filter(name=name).first()
    if row is None:
        return False
    if row.declared and not row.retired:
        raise InvalidOption(f"schedule {name!r} is declared in code: remove it there, or pause it")
    row.delete(using=_alias())
    return True


def pause(name: str, *, until: datetime | None = None, actor: str = "", reason: str = "") -> None:
    """Nothing fires after this is committed, until `until` or `resume`; the last word counts. Raises ScheduleNotFound
    and InvalidOption."""
    with transaction.atomic(using=_alias()):
        row = _locked(name)
        row.active = until is not None
        row.paused_until = None if until is None else require_aware(until, "until", use_tz=True)
        row.paused_by, row.reason = clean_text(actor, 150), clean_text(reason, 200)
        row.save(using=_alias())


def resume(name: str) -> None:
    """It waits for its next instant: a pause is no downtime. Raises ScheduleNotFound."""
    with transaction.atomic(using=_alias()):
        row = _locked(name)
        row.active, row.paused_until, row.paused_by, row.reason = True, None, "", ""
        row.save(using=_alias())


def skip_next(name: str, *, actor: str = "", reason: str = "", skip: bool = True) -> None:
    """Make no job of the next occurrence, which records who and why; `skip=False` takes that back. Raises
    ScheduleNotFound."""
    with transaction.atomic(using=_alias()):
        row = _locked(name)
        row.skip_next, row.skipped_by = skip, clean_text(actor, 150) if skip else ""
        row.reason = clean_text(reason, 200) if skip else ""
        row.save(using=_alias())


def run_now(name: str, *, actor: str = "") -> Job:
    """Make one job at once; moves no instant, and asks nobody whether an earlier one has ended.

    Raises ScheduleNotFound, TaskNotFound, InvalidArguments, and JobsError when its factory gives nothing.
    """
    row = Schedule.objects.using(_alias()).filter(name=name).first()
    if row is None:
        raise _not_found(name)
    db = database(_alias())
    now = database_now(_alias())
    made = submission_of(row.task, row.factory, row.arguments, row.options, now)
    if made is None:
        raise JobsError(f"schedule {name!r}: its factory gives nothing to do now")
    receipt = submit(db, [replace(made, schedule_id=row.pk, scheduled_for=now)], actor=actor)[0]
    hint_due(db)
    found: Job = Job.objects.using(_alias()).get(pk=receipt.job_id)
    return found


def submission_for(schedule: DueSchedule, at: datetime) -> Submission | None:
    """What the engine makes of an occurrence; None: its factory gives nothing to do."""
    return submission_of(schedule.task, schedule.factory, schedule.arguments, schedule.options, at)


def submission_of(
    task: str, factory_name: str, arguments: Mapping[str, Any], options: Mapping[str, Any], at: datetime
) -> Submission | None:
    """Raises TaskNotFound, InvalidOption, InvalidArguments, QueueNotDeclared, and whatever a factory raises."""
    definition = registry.get(task)
    refuse_submit_options(options)
    submitter: Submitter[Any] = Submitter(definition)
    submitter = submitter.using(**options) if options else submitter
    if factory_name:
        given = factories.get(factory_name)(at)
        if given is None:
            return None
        args, kwargs = given
        return submitter.bind(*args, **kwargs).submission
    stored = {"args": arguments.get("args", []), "kwargs": arguments.get("kwargs", {})}
    definition.parameters.decode(stored)
    text = dumps(stored, root="", max_bytes=jobs_settings().MAX_ARGUMENT_BYTES)
    return submitter.bound(text).submission


def fill(row: Schedule, definition: TaskDefinition, declared: Declaration, made_by: Factory | None = None) -> None:
    """Write a declaration into a row and check all of it. Raises InvalidOption, InvalidArguments, QueueNotDeclared."""
    row.task, row.factory = definition.name, made_by.name if made_by else ""
    encoded = "{}"
    if made_by is None:
        longest = jobs_settings().MAX_ARGUMENT_BYTES
        encoded = definition.parameters.encode(declared.args, declared.kwargs, max_bytes=longest)
    row.arguments = json.loads(encoded)
    row.options = storable_options(declared.options)
    row.overlap, row.catch_up, row.catch_up_cap = declared.overlap, declared.catch_up, declared.catch_up_cap
    _fill_rule(row, declared.rule)
    if made_by is None:
        submission_of(row.task, "", row.arguments, row.options, database_now(_alias()))
    try:
        row.clean()
    except ValidationError as error:
        raise InvalidOption(f"schedule {row.name!r}: {'; '.join(error.messages)}") from None


def definition_of(task: Any) -> TaskDefinition:
    """Of a task, a job class, `task.using(...)`, or a task's name. Raises TaskNotFound and InvalidOption."""
    if isinstance(task, str):
        return registry.get(task)
    definition = getattr(getattr(task, "_submitter", task), "definition", None)
    if not isinstance(definition, TaskDefinition):
        raise InvalidOption(f"{shown(task)} is no task: give one that @job made, a job class, or a factory")
    if isinstance(task, Submitter) and task.has_options:
        raise InvalidOption(f"{definition.name}: give a schedule's job options as options={{...}}, not by using(...)")
    return definition


def storable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Durations as seconds; InvalidOption for what JSON does not hold."""
    plain = {name: one.total_seconds() if isinstance(one, timedelta) else one for name, one in options.items()}
    try:
        stored: dict[str, Any] = json.loads(dumps(plain, root="options", max_bytes=MAX_META_BYTES))
    except NotStorable as error:
        raise InvalidOption(f"{error}: a schedule's options are stored as JSON") from None
    return stored


def _fill_rule(row: Schedule, rule: PlainRule) -> None:
    anchor_at = rule.anchor_at
    if rule.interval_seconds is not None and anchor_at is None:
        anchor_at = row.anchor_at  # counted from where it always was
    row.expression, row.timezone = rule.expression, rule.timezone or row.timezone or "UTC"
    row.interval_seconds, row.anchor_at = rule.interval_seconds, anchor_at
    row.start_at, row.end_at, row.jitter_seconds = rule.start_at, rule.end_at, rule.jitter_seconds


def _locked(name: str) -> Schedule:
    row: Schedule | None = Schedule.objects.using(_alias()).select_for_update().filter(name=name).first()
    if row is None:
        raise _not_found(name)
    return row


def _not_found(name: str) -> ScheduleNotFound:
    return ScheduleNotFound(f"no schedule is named {name!r}: `python manage.py schedules` lists them")


def _alias() -> str:
    return jobs_settings().DATABASE
