"""Why an attempt failed: what the grouping of failures into causes reads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempt import Attempt
from jobs.models.job import Job


class Failure(models.Model):
    """Only ever inserted, with the outcome. Lists never load `traceback`."""

    attempt = models.OneToOneField(Attempt, on_delete=models.CASCADE, primary_key=True, related_name="failure")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="failure_set")
    task = models.CharField(_("task"), max_length=200)
    exception_class = models.CharField(_("exception class"), max_length=200)
    causes = models.JSONField(_("causes"), default=list)
    """Dotted classes of the exception's chain, outermost first."""
    module = models.CharField(_("module of the innermost project frame"), max_length=200, default="", db_default="")
    function = models.CharField(_("function of the innermost project frame"), max_length=200, default="", db_default="")
    message = models.TextField(_("message"), default="", db_default="")
    traceback = models.TextField(_("traceback"), default="", db_default="")
    failed_at = models.DateTimeField(_("failed at"), db_default=Now())

    class Meta:
        verbose_name = _("failure")
        verbose_name_plural = _("failures")
        indexes: ClassVar = [models.Index(fields=["exception_class", "attempt"], name="jobs_failure_class")]

    def __str__(self) -> str:
        return f"{self.exception_class} in attempt {self.pk}"
