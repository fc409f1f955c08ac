"""Bring the rows of schedules that are declared in code into line with this release."""

from __future__ import annotations

import logging

from jobs import discovery
from jobs.conf import jobs_settings
from jobs.domain.declaration import Declaration, digest
from jobs.domain.errors import JobsError
from jobs.domain.registry import registry
from jobs.domain.task import TaskDefinition
from jobs.models import Release, Schedule
from jobs.recurring import fill
from jobs.store.database import database

logger = logging.getLogger(__name__)


def sync_declared(*, force: bool = False) -> bool:
    """Whether this process's declarations are the newest release's, and so the rows are as they say.

    New ones are added, changed ones changed, gone ones retired: they fire no more, and their rows stay. A person's
    pause and their own schedules are left alone. A release that was seen before a newer one changes nothing, so an old
    process that starts again during a deploy reverts nothing; `force` (a roll-back) makes it the newest. Others
    that start meanwhile wait: a row could not be locked before the first release, nor could the newest one's while a
    newer one is being added.
    """
    alias = jobs_settings().DATABASE
    declared: dict[str, tuple[TaskDefinition, Declaration]] = {}
    for definition, one in _declarations():
        first, _ = declared.setdefault(one.name, (definition, one))
        if first is not definition:
            logger.error(
                "tasks %s and %s declare a schedule %r: the first counts", first.name, definition.name, one.name
            )
    if discovery.failed:
        names = ", ".join(discovery.failed)
        logger.warning("schedules declared in code are left as they are: %s cannot be imported", names)
        return False
    mine = digest((definition.name, one) for definition, one in declared.values())
    db = database(alias)
    with db.transaction():
        db.let_in_one("jobs_release")
        if not _is_newest(alias, mine, force):
            return False
        rows = {row.name: row for row in Schedule.objects.using(alias).order_by("id")}
        for name, (definition, one) in declared.items():
            _bring_into_line(alias, rows.get(name), definition, one)
        for name, row in rows.items():
            if row.declared and not row.retired and name not in declared:
                if not _lock(alias, row):
                    continue
                row.retired = True
                row.save(using=alias)
                logger.warning("schedule %r is no longer declared by this code: it fires no more", name)
    return True


def _declarations() -> list[tuple[TaskDefinition, Declaration]]:
    definitions = [registry.get(name) for name in registry.names()]
    return [(definition, one) for definition in definitions for one in definition.schedules]


def _is_newest(alias: str, mine: str, force: bool) -> bool:
    releases = Release.objects.using(alias)
    newest = releases.order_by("-id").first()
    if newest is not None and newest.declarations == mine:
        return True
    known = releases.filter(declarations=mine).first()
    if known is not None and not force:
        logger.warning(
            "a newer release declares its schedules otherwise: this process leaves them as they are. "
            "If this is the one that counts, run: python manage.py schedules sync --force"
        )
        return False
    if known is not None:
        known.delete()
    releases.create(declarations=mine)
    return True


def _bring_into_line(alias: str, row: Schedule | None, definition: TaskDefinition, declared: Declaration) -> None:
    if row is not None and not row.declared:
        logger.error(
            "schedule %r is declared in code, but a row of that name was made by hand: it is left alone. Rename one",
            declared.name,
        )
        return
    is_new = row is None
    row = row or Schedule(name=declared.name)
    before = None if is_new else _content(row)
    try:
        fill(row, definition, declared)
    except JobsError as error:
        logger.error("schedule %r cannot be stored as it is declared: %s", declared.name, error)
        return
    row.declared, row.retired = True, False
    if before != _content(row) and (is_new or _lock(alias, row)):
        row.save(using=alias)
        logger.info("schedule %r is %s: %s", row.name, "new" if is_new else "changed", row.describe())


def _content(row: Schedule) -> tuple[object, ...]:
    return tuple(getattr(row, field.attname) for field in row._meta.concrete_fields)


def _lock(alias: str, row: Schedule) -> bool:
    """Whether nobody holds it: a scheduler must not wait for a person to start."""
    if Schedule.objects.using(alias).select_for_update(skip_locked=True).filter(pk=row.pk).exists():
        return True
    logger.warning("schedule %r is held by a transaction: it is brought into line when a scheduler starts", row.name)
    return False
