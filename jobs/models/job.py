"""The hot table: one narrow row per accepted piece of work."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.domain.status import TERMINAL, WAITING, Status
from jobs.models.choices import EXECUTION_CHOICES, STATUS_CHOICES
from jobs.models.guard import GuardedModel, GuardedQuerySet

_TERMINAL = [status.value for status in TERMINAL]
_WAITING = [status.value for status in WAITING]


class Job(GuardedModel):
    """One job. Its arguments and result are in `Payload` and `Result`, its runs in `Attempt`.

    Every index but the primary key is partial: each status change pays for every index the row is in.
    """

    id = models.BigAutoField(primary_key=True)
    task = models.CharField(_("task"), max_length=200)
    queue = models.CharField(_("queue"), max_length=64, default="default", db_default="default")
    execution = models.CharField(
        _("execution"), max_length=8, choices=EXECUTION_CHOICES, default="thread", db_default="thread"
    )
    priority = models.SmallIntegerField(_("priority"), default=0, db_default=0)
    rank = models.FloatField(_("rank"), default=0.0, db_default=0.0)
    status = models.CharField(
        _("status"), max_length=12, choices=STATUS_CHOICES, default=Status.PENDING.value, db_default="pending"
    )
    run_at = models.DateTimeField(_("due at"), db_default=Now())
    submitted_at = models.DateTimeField(_("submitted at"), db_default=Now())
    status_changed_at = models.DateTimeField(_("status changed at"), db_default=Now())
    started_at = models.DateTimeField(_("first started at"), null=True, blank=True, db_default=None)
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True, db_default=None)
    deadline = models.DateTimeField(_("deadline"), null=True, blank=True, db_default=None)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True, db_default=None)
    timeout_seconds = models.FloatField(_("timeout (seconds)"), null=True, blank=True, db_default=None)
    max_retries = models.IntegerField(_("max. retries"), default=0, db_default=0)
    max_lost = models.IntegerField(_("max. lost"), default=3, db_default=3)
    at_most_once = models.BooleanField(_("at most once"), default=False, db_default=False)
    store_result = models.BooleanField(_("store result"), default=True, db_default=True)
    attempts = models.IntegerField(_("attempts"), default=0, db_default=0)
    failures = models.IntegerField(_("failures"), default=0, db_default=0)
    losses = models.IntegerField(_("losses"), default=0, db_default=0)
    snoozes = models.IntegerField(_("snoozes"), default=0, db_default=0)
    interruptions = models.IntegerField(_("interruptions"), default=0, db_default=0)
    unique_key = models.CharField(_("unique key"), max_length=200, null=True, blank=True, db_default=None)
    unique_slot = models.CharField(_("unique slot"), max_length=200, null=True, blank=True, db_default=None)
    """The key while this job holds it: set at insert, afterwards only cleared; a requeue takes it again."""
    unique_until_started = models.BooleanField(_("unique until started"), default=False, db_default=False)
    cancel_requested_at = models.DateTimeField(_("cancel requested at"), null=True, blank=True, db_default=None)
    cause = models.CharField(_("cause"), max_length=200, default="", blank=True, db_default="")
    """One line for people: why it ended, or who asked it to."""
    schedule_id = models.BigIntegerField(_("schedule"), null=True, blank=True, db_default=None)
    """Not a foreign key: deleting a schedule keeps its jobs."""
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True, blank=True, db_default=None)
    """The planned instant this job is the occurrence of, without jitter."""
    unknown_since = models.DateTimeField(_("task unknown since"), null=True, blank=True, db_default=None)

    objects = GuardedQuerySet["Job"].as_manager()

    created: bool
    """Set by a submit: False when the unique key was held and this is the holder."""

    class Meta(GuardedModel.Meta):
        abstract = False
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions: ClassVar = [
            ("submit_job", "Can submit jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("requeue_job", "Can requeue jobs"),
        ]
        indexes: ClassVar = [
            # The ready heap: the claim reads its head and nothing else.
            models.Index(
                fields=["queue", "execution", "rank", "run_at", "id"],
                name="jobs_job_ready",
                condition=models.Q(status=Status.PENDING.value),
            ),
            models.Index(
                fields=["run_at"],
                name="jobs_job_due",
                condition=models.Q(status__in=[Status.SCHEDULED.value, Status.RETRY_WAIT.value]),
            ),
            models.Index(
                fields=["expires_at"],
                name="jobs_job_expiring",
                condition=models.Q(status__in=_WAITING, expires_at__isnull=False, started_at__isnull=True),
            ),
            models.Index(fields=["id"], name="jobs_job_running", condition=models.Q(status=Status.RUNNING.value)),
            models.Index(
                fields=["status", "ended_at"],
                name="jobs_job_ended",
                condition=models.Q(status__in=_TERMINAL),
            ),
            # Whether an earlier job of a schedule has ended.
            models.Index(
                fields=["schedule_id", "id"],
                name="jobs_job_of_schedule",
                condition=models.Q(status__in=[*_WAITING, Status.RUNNING.value], schedule_id__isnull=False),
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["unique_slot"], name="jobs_job_unique", condition=models.Q(unique_slot__isnull=False)
            ),
            models.CheckConstraint(
                name="jobs_job_status_known", condition=models.Q(status__in=[status.value for status in Status])
            ),
            models.CheckConstraint(
                name="jobs_job_ended_iff_terminal",
                condition=models.Q(status__in=_TERMINAL, ended_at__isnull=False)
                | (~models.Q(status__in=_TERMINAL) & models.Q(ended_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="jobs_job_no_slot_when_ended",
                condition=~models.Q(status__in=_TERMINAL) | models.Q(unique_slot__isnull=True),
            ),
            models.CheckConstraint(
                name="jobs_job_counts_not_negative",
                condition=models.Q(
                    attempts__gte=0, failures__gte=0, losses__gte=0, snoozes__gte=0, interruptions__gte=0
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.task}"

    @property
    def arguments(self) -> dict[str, Any]:
        """As stored: `{"args": [...], "kwargs": {...}}`; one query."""
        stored: dict[str, Any] = self.payload.arguments
        return stored

    @property
    def result(self) -> Any:
        """What the completed job returned, as JSON values; None when it returned nothing. One query."""
        try:
            return self.stored_result.value
        except ObjectDoesNotExist:
            return None

    @property
    def is_finished(self) -> bool:
        return self.status in TERMINAL

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.created = False
