"""The one gate for status changes: nothing but the store's verbs moves a job, and only along legal moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models

from jobs.domain.errors import IllegalMove
from jobs.domain.status import INITIAL, LEGAL_MOVES, Status

if TYPE_CHECKING:
    from jobs.models.job import Job

GUARDED = (
    "status",
    "status_changed_at",
    "execution",
    "run_at",
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
    if job.ended_at is not None or job.attempts:
        raise IllegalMove("a job is born without an end and without attempts")


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

    def bulk_create(self, objs: Iterable[_Job], *args: Any, **kwargs: Any) -> list[_Job]:
        rows = list(objs)
        refuse_guarded(kwargs.get("update_fields") or (), "bulk_create() with update_conflicts")
        for row in rows:
            refuse_odd_birth(row)
        return super().bulk_create(rows, *args, **kwargs)

    bulk_create.alters_data = True  # type: ignore[attr-defined]


class GuardedModel(models.Model):
    """`save()` of an existing row never writes a guarded column, so a stale instance cannot move a job back."""

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        update_fields: Sequence[str] | None = kwargs.get("update_fields")
        if update_fields is not None:
            refuse_guarded(update_fields, "save(update_fields=...)")
        elif self._state.adding or kwargs.get("force_insert"):
            refuse_odd_birth(self)  # type: ignore[arg-type]
            # Without this a hand-set primary key would turn the birth into an UPDATE of somebody else's row.
            kwargs["force_insert"] = True
        else:
            deferred = self.get_deferred_fields()
            kwargs["update_fields"] = [
                field.name
                for field in self._meta.concrete_fields
                if not field.primary_key and field.name not in GUARDED and field.attname not in deferred
            ]
        super().save(*args, **kwargs)

    save.alters_data = True  # type: ignore[attr-defined]

    def save_base(self, raw: bool = False, *args: Any, **kwargs: Any) -> None:
        if raw and type(self)._base_manager.using(kwargs.get("using")).filter(pk=self.pk).exists():
            raise IllegalMove(f"loading a fixture may not overwrite job {self.pk}")
        super().save_base(raw, *args, **kwargs)

    save_base.alters_data = True  # type: ignore[attr-defined]
