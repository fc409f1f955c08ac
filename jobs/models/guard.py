"""The one gate for status changes: nothing but the store's verbs moves a job, and only along legal moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models.expressions import DatabaseDefault
from django.db.models.signals import pre_save
from django.dispatch import receiver

from jobs.domain.errors import IllegalMove
from jobs.domain.status import INITIAL, LEGAL_MOVES, Status

if TYPE_CHECKING:
    from jobs.models.job import Job

GUARDED = (
    "status",
    "status_changed_at",
    "execution",
    "run_at",
    "priority",
    "rank",
    "started_at",
    "ended_at",
    "attempts",
    "failures",
    "losses",
    "snoozes",
    "interruptions",
    "unique_slot",
    "cancel_requested_at",
    "cause",
    "unknown_since",
)
"""Columns that only a store verb writes, once the row exists."""

BORN_EMPTY = tuple(
    name for name in GUARDED if name not in ("status", "status_changed_at", "execution", "run_at", "priority", "rank")
)
"""Those that a job may not be born with: what its runs and its callers have done to it."""

_Job = TypeVar("_Job", bound="Job")


def legal_from(*statuses: Status, to: Status) -> str:
    """The SQL list of `statuses`, for a verb's `WHERE status IN ...`, after a look at the table of legal moves.

    Verbs call it at import, so an illegal verb cannot even be loaded. Raises IllegalMove.
    """
    for status in statuses:
        if to not in LEGAL_MOVES[status]:
            raise IllegalMove(f"no job may go from {status} to {to}")
    return "(" + ", ".join(f"'{status}'" for status in statuses) + ")"


def refuse_guarded(names: Iterable[str], route: str) -> None:
    guarded = sorted(set(names) & set(GUARDED))
    if guarded:
        raise IllegalMove(
            f"{route} may not write {', '.join(guarded)} of a job: use jobs.cancel, jobs.requeue or another store verb"
        )


def refuse_odd_birth(job: Job) -> None:
    if job.status not in INITIAL:
        raise IllegalMove(f"a job cannot be born {job.status}: only {', '.join(INITIAL)}")
    odd = [name for name in BORN_EMPTY if not _is_empty(getattr(job, name))]
    if odd:
        raise IllegalMove(f"a job cannot be born with {', '.join(odd)}: a store verb writes that")


def _is_empty(value: object) -> bool:
    return value in (None, 0, "") or isinstance(value, DatabaseDefault)


class GuardedQuerySet(models.QuerySet[_Job]):
    """Refuses every bulk route to a guarded column."""

    def update(self, **kwargs: Any) -> int:
        refuse_guarded(kwargs, "update()")
        return super().update(**kwargs)

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_update(self, objs: Iterable[_Job], fields: Iterable[str], *args: Any, **kwargs: Any) -> int:
        fields = list(fields)
        refuse_guarded(fields, "bulk_update()")
        return super().bulk_update(objs, fields, *args, **kwargs)

    bulk_update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(
        self,
        objs: Iterable[_Job],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[_Job]:
        rows = list(objs)
        refuse_guarded(update_fields or (), "bulk_create() with update_conflicts")
        for row in rows:
            refuse_odd_birth(row)
        return super().bulk_create(rows, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields)

    bulk_create.alters_data = True  # type: ignore[attr-defined]


class GuardedModel(models.Model):
    """`save()` of an existing row never writes a guarded column, so a stale instance cannot move a job back."""

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(  # without the positional form, which Django 6 no longer has either
        self,
        *,
        force_insert: Any = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        if update_fields is not None:
            update_fields = list(update_fields)
            refuse_guarded(update_fields, "save(update_fields=...)")
        elif self._state.adding or force_insert:
            refuse_odd_birth(self)  # type: ignore[arg-type]
            # Without this a hand-set primary key would turn the birth into an UPDATE of somebody else's row.
            force_insert = force_insert or True
        else:
            deferred = self.get_deferred_fields()
            update_fields = [
                field.name
                for field in self._meta.concrete_fields
                if not field.primary_key and field.name not in GUARDED and field.attname not in deferred
            ]
        super().save(force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields)

    save.alters_data = True  # type: ignore[attr-defined]


@receiver(pre_save, dispatch_uid="jobs.guard")
def refuse_raw_save(sender: type[models.Model], instance: models.Model, raw: bool, using: str, **_: Any) -> None:
    """`loaddata` goes round `save()`: it may give birth to jobs, and overwrite none."""
    if raw and isinstance(instance, GuardedModel):
        if type(instance)._base_manager.using(using).filter(pk=instance.pk).exists():
            raise IllegalMove(f"loading a fixture may not overwrite job {instance.pk}")
        refuse_odd_birth(instance)  # type: ignore[arg-type]
