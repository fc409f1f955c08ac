"""One run of a job; its id is the fence that every write about the run names."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.domain.status import AttemptOutcome
from jobs.models.choices import OUTCOME_CHOICES
from jobs.models.job import Job

_OPEN = models.Q(outcome=AttemptOutcome.RUNNING.value)


class Attempt(models.Model):
    """Inserted by the claim, renewed while it is open, closed once. No index holds the lease or the progress."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="runs", db_index=False)
    number = models.IntegerField(_("number"))
    worker_id = models.UUIDField(_("worker id"))
    """Not a foreign key: recovery depends on the attempt's own lease, never on a worker's row."""
    worker_name = models.CharField(_("worker"), max_length=100, default="", db_default="")
    outcome = models.CharField(
        _("outcome"), max_length=12, choices=OUTCOME_CHOICES, default=AttemptOutcome.RUNNING.value, db_default="running"
    )
    claimed_at = models.DateTimeField(_("claimed at"), db_default=Now())
    started_at = models.DateTimeField(_("started at"), null=True, blank=True, db_default=None)
    """When the body began; written with the next renewal or the outcome."""
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True, db_default=None)
    lease_until = models.DateTimeField(_("lease until"))
    lingering_until = models.DateTimeField(_("lingering until"), null=True, blank=True, db_default=None)
    """Set while the attempt is closed but its thread still runs; renewed like a lease."""
    reason = models.CharField(_("reason"), max_length=200, default="", blank=True, db_default="")
    progress_done = models.FloatField(_("done"), null=True, blank=True, db_default=None)
    progress_total = models.FloatField(_("of"), null=True, blank=True, db_default=None)
    progress_message = models.CharField(_("progress"), max_length=200, default="", blank=True, db_default="")

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        indexes: ClassVar = [
            models.Index(fields=["job", "number"], name="jobs_attempt_job"),
            models.Index(
                fields=["job"], name="jobs_attempt_lingering", condition=models.Q(lingering_until__isnull=False)
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["job"], name="jobs_attempt_one_open", condition=_OPEN),
            models.CheckConstraint(
                name="jobs_attempt_ended_iff_closed",
                condition=(_OPEN & models.Q(ended_at__isnull=True)) | (~_OPEN & models.Q(ended_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of job {self.job_id}"


class AttemptLog(models.Model):
    """The bounded log of one attempt: `[[seconds, level, logger, message], ...]`."""

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, primary_key=True, related_name="captured_log")
    lines = models.JSONField(_("lines"), default=list)

    class Meta:
        verbose_name = _("attempt log")
        verbose_name_plural = _("attempt logs")

    def __str__(self) -> str:
        return f"log of attempt {self.pk}"
