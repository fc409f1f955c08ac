"""Recurring schedules, and what became of each of their planned instants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connections, models, router, transaction
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.domain.advance import Step, Timing, advance
from jobs.domain.errors import InvalidOption, InvalidRule
from jobs.domain.option_checks import checked_text
from jobs.domain.recurrence import PlainRule, Rule, rule_from
from jobs.domain.recurrence.catch_up import CAP, LARGEST_CAP, CatchUp
from jobs.domain.recurrence.overlap import Overlap
from jobs.domain.schedule_work import mistakes
from jobs.models.choices import CATCH_UP_CHOICES, OCCURRENCE_CHOICES, OVERLAP_CHOICES
from jobs.models.clock import database_now


def timing_sql(vendor: str) -> str:
    """One text of all that the instants depend on, so that an edit by any route is noticed.

    Instants as seconds on PostgreSQL, whose texts of them depend on the session's time zone.
    """
    instants = ("anchor_at", "start_at", "end_at")
    told = [
        f"EXTRACT(EPOCH FROM {column})" if vendor == "postgresql" and column in instants else column
        for column in ("expression", "timezone", "interval_seconds", *instants)
    ]
    return " || '|' || ".join(f"COALESCE(CAST({column} AS text), '')" for column in told)


EDITED = "the rule was edited"
"""Why there is no job of an occurrence that was due, and not made yet."""

ENGINE_OWNED = (
    "next_run_at",
    "last_occurrence_at",
    "planned_rule",
    "is_exhausted",
    "problem",
    "problem_since",
    "missed",
)
"""Columns that `save()` of an existing row never writes: a stale form must not move a schedule back."""

_PARTS = {
    "expression": "expression",
    "timezone": "timezone",
    "interval": "interval_seconds",
    "anchor": "anchor_at",
    "start": "start_at",
    "end": "end_at",
    "jitter": "jitter_seconds",
}


class Schedule(models.Model):
    """A rule that turns into jobs: one for each planned instant, for any number of schedulers.

    The row remembers the next and the last instant, so history may be pruned. Everything but the columns of the
    engine may be edited by any route; an edited rule starts over from now.
    """

    name = models.CharField(_("name"), max_length=200, unique=True)
    task = models.CharField(_("task"), max_length=200)
    arguments = models.JSONField(_("arguments"), default=dict, blank=True)
    """`{"args": [...], "kwargs": {...}}`, as a job's payload stores them."""
    options = models.JSONField(_("job options"), default=dict, blank=True)
    """Keywords of `task.using(...)`: queue, priority, timeout, retry (a number), execution ..."""
    factory = models.CharField(_("factory"), max_length=200, blank=True, default="", db_default="")
    """A registered function of the planned instant that gives the arguments, or None for none this time."""
    expression = models.CharField(_("cron expression"), max_length=255, blank=True, default="", db_default="")
    timezone = models.CharField(_("time zone"), max_length=64, blank=True, default="UTC", db_default="UTC")
    interval_seconds = models.IntegerField(_("every (seconds)"), null=True, blank=True, default=None, db_default=None)
    anchor_at = models.DateTimeField(_("counted from"), null=True, blank=True, default=None, db_default=None)
    start_at = models.DateTimeField(_("from"), null=True, blank=True, default=None, db_default=None)
    end_at = models.DateTimeField(_("until before"), null=True, blank=True, default=None, db_default=None)
    jitter_seconds = models.PositiveIntegerField(_("jitter (seconds)"), default=0, db_default=0)
    overlap = models.CharField(
        _("overlap"), max_length=16, choices=OVERLAP_CHOICES, default=Overlap.SKIP.value, db_default="skip"
    )
    catch_up = models.CharField(
        _("catch up"), max_length=10, choices=CATCH_UP_CHOICES, default=CatchUp.COALESCE.value, db_default="coalesce"
    )
    catch_up_cap = models.PositiveSmallIntegerField(
        _("at most"), default=CAP, db_default=CAP, validators=[MinValueValidator(1), MaxValueValidator(LARGEST_CAP)]
    )
    active = models.BooleanField(_("active"), default=True, db_default=True)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True, default=None, db_default=None)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="", db_default="")
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="", db_default="")
    skip_next = models.BooleanField(_("skip the next one"), default=False, db_default=False)
    skipped_by = models.CharField(_("skipped by"), max_length=150, blank=True, default="", db_default="")
    declared = models.BooleanField(_("declared in code"), default=False, db_default=False)
    retired = models.BooleanField(_("no longer declared"), default=False, db_default=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now())

    next_run_at = models.DateTimeField(_("next"), null=True, blank=True, default=None, db_default=None)
    last_occurrence_at = models.DateTimeField(_("last"), null=True, blank=True, default=None, db_default=None)
    planned_rule = models.TextField(default="", blank=True, db_default="", editable=False)
    """`timing_sql` when `next_run_at` was computed."""
    is_exhausted = models.BooleanField(_("finished"), default=False, db_default=False, editable=False)
    problem = models.CharField(_("problem"), max_length=500, blank=True, default="", db_default="", editable=False)
    problem_since = models.DateTimeField(null=True, blank=True, default=None, db_default=None, editable=False)
    missed = models.IntegerField(_("missed"), default=0, db_default=0, editable=False)
    """Occurrences that were due and are counted in no row of `Occurrence`."""

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering: ClassVar = ["name"]
        permissions: ClassVar = [("run_schedule", "Can run schedules now"), ("pause_schedule", "Can pause schedules")]

    def __str__(self) -> str:
        return self.name

    def save(
        self,
        *,
        force_insert: Any = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Also computes the next instant anew, by the database's clock, when the rule or the pause has changed."""
        using = using or router.db_for_write(type(self), instance=self)
        if self.interval_seconds is not None and self.anchor_at is None:
            self.anchor_at = (self.start_at or database_now(using)).replace(microsecond=0)
        if update_fields is None and not (self._state.adding or force_insert):
            deferred = self.get_deferred_fields()
            update_fields = [
                field.name
                for field in self._meta.concrete_fields
                if not field.primary_key and field.name not in ENGINE_OWNED and field.attname not in deferred
            ]
        with transaction.atomic(using=using):
            super().save(force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields)
            self._plan(using)

    save.alters_data = True  # type: ignore[attr-defined]

    @property
    def plain_rule(self) -> PlainRule:
        return PlainRule(
            expression=self.expression,
            timezone=self.timezone if self.expression else "",
            interval_seconds=self.interval_seconds,
            anchor_at=self.anchor_at,
            start_at=self.start_at,
            end_at=self.end_at,
            jitter_seconds=self.jitter_seconds,
        )

    @property
    def rule(self) -> Rule:
        """Raises InvalidRule."""
        return rule_from(self.plain_rule)

    def is_paused(self, now: datetime) -> bool:
        return not self.active or self.retired or (self.paused_until is not None and self.paused_until > now)

    def advance(self, now: datetime) -> Step:
        """The pure step: what is due at `now`, and the next instant. Changes nothing. Raises InvalidRule."""
        return advance(
            Timing(
                rule=self.plain_rule,
                planned_at=self.next_run_at,
                last_occurrence_at=self.last_occurrence_at,
                not_before=self.paused_until,
                catch_up=CatchUp(self.catch_up),
                catch_up_cap=self.catch_up_cap,
                skip_next=self.skip_next,
            ),
            now,
        )

    def clean(self) -> None:
        """Raises ValidationError with every mistake at its field; that the queue is declared is the doors' to say."""
        plain = self.plain_rule
        if plain.interval_seconds is not None and plain.anchor_at is None:
            # As `save()` will fill it in, which knows the database.
            using = self._state.db or router.db_for_write(type(self), instance=self)
            plain = replace(plain, anchor_at=self.start_at or database_now(using))
        wrong = mistakes(self.task, self.factory, self.arguments, self.options)
        try:
            checked_text(self.name, "name", 200)
        except InvalidOption as error:
            wrong["name"] = str(error)
        try:
            rule_from(plain)
        except InvalidRule as error:
            wrong[_PARTS.get(error.part, "expression")] = str(error)
        except (OverflowError, TypeError, ValueError):
            wrong["start_at"] = "the rule leaves the calendar: its instants are from 1970 to 9000"
        if wrong:
            raise ValidationError(dict(wrong))

    def _plan(self, using: str) -> None:
        row = Schedule.objects.using(using).filter(pk=self.pk)
        stored = (
            row.annotate(timing=RawSQL(timing_sql(connections[using].vendor), [])).values(*ENGINE_OWNED, "timing").get()
        )
        for name in ENGINE_OWNED:
            setattr(self, name, stored[name])
        now = database_now(using)
        unchanged = stored["timing"] == stored["planned_rule"]
        if self.is_paused(now):
            if self.next_run_at is not None or not unchanged:
                self._write(row, next_run_at=None, planned_rule=stored["timing"], problem="", problem_since=None)
            return
        if unchanged and (self.next_run_at is not None or self.is_exhausted):
            return
        if self.next_run_at is not None and self.next_run_at <= now:
            skipped = {"outcome": "skipped", "reason": EDITED}
            of_this = Occurrence.objects.using(using)
            of_this.get_or_create(schedule=self, planned_at=self.next_run_at, defaults=skipped)
        try:
            since = max(at for at in (now, self.last_occurrence_at) if at is not None)
            next_at, problem = self.rule.next_after(since), ""
        except (InvalidRule, OverflowError, TypeError, ValueError) as error:
            next_at, problem = None, str(error)[:500]
        self._write(
            row,
            next_run_at=next_at,
            planned_rule=stored["timing"],
            is_exhausted=next_at is None and not problem,
            problem=problem,
            problem_since=now if problem else None,
        )

    def _write(self, row: models.QuerySet[Schedule], **values: Any) -> None:
        row.update(**values)
        for name, value in values.items():
            setattr(self, name, value)

    def describe(self) -> str:
        """The rule in plain English, or what is wrong with it."""
        try:
            return self.rule.describe()
        except InvalidRule as error:
            return str(error)


class Occurrence(models.Model):
    """One planned instant, and what became of it. May be pruned: the schedule's own row remembers the last one."""

    schedule = models.ForeignKey(
        Schedule,
        on_delete=models.CASCADE,
        related_name="occurrences",
        db_index=False,
        db_constraint=False,  # so that a schedule may be deleted by SQL; what is left here is pruned
        verbose_name=_("schedule"),
    )
    planned_at = models.DateTimeField(_("planned at"))
    outcome = models.CharField(_("outcome"), max_length=8, choices=OCCURRENCE_CHOICES)
    job_id = models.BigIntegerField(_("job"), null=True, blank=True, db_default=None)
    """Not a foreign key: jobs are pruned earlier."""
    reason = models.CharField(_("reason"), max_length=200, blank=True, default="", db_default="")
    missed = models.IntegerField(_("missed before it"), default=0, db_default=0)
    recorded_at = models.DateTimeField(_("recorded at"), db_default=Now())

    class Meta:
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        ordering: ClassVar = ["-planned_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["schedule", "planned_at"], name="jobs_occurrence_once"),
        ]

    def __str__(self) -> str:
        return f"{self.planned_at:%Y-%m-%d %H:%M:%S} UTC"
