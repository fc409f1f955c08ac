"""The cold side of a job: what it was given and what it gave, each written once."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.choices import EXECUTION_CHOICES
from jobs.models.job import Job


class Payload(models.Model):
    """Arguments and submission details, kept out of the hot table."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="payload")
    arguments = models.JSONField(_("arguments"), default=dict)
    tags = models.JSONField(_("tags"), default=dict, db_default=models.Value({}, models.JSONField()))
    meta = models.JSONField(_("meta"), default=dict, db_default=models.Value({}, models.JSONField()))
    submitted_execution = models.CharField(
        _("execution as submitted"), max_length=8, choices=EXECUTION_CHOICES, default="thread", db_default="thread"
    )
    """A job that was lost runs in a child process; a requeue goes back to this."""
    retry_base_seconds = models.FloatField(_("retry: base delay (seconds)"), default=1.0, db_default=1.0)
    retry_max_seconds = models.FloatField(_("retry: max. delay (seconds)"), default=300.0, db_default=300.0)
    retry_jitter = models.BooleanField(_("retry: jitter"), default=True, db_default=True)

    class Meta:
        verbose_name = _("payload")
        verbose_name_plural = _("payloads")

    def __str__(self) -> str:
        return f"payload of job {self.pk}"


class Result(models.Model):
    """What a completed job returned; there is no row for None."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="stored_result")
    value = models.JSONField(_("value"))

    class Meta:
        verbose_name = _("result")
        verbose_name_plural = _("results")

    def __str__(self) -> str:
        return f"result of job {self.pk}"
