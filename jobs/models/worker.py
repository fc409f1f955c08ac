"""One `runscheduler` process as it describes itself; nothing about recovery depends on these rows."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Worker(models.Model):
    id = models.UUIDField(primary_key=True)
    """Random per start. Name, host and pid are labels only."""
    name = models.CharField(_("name"), max_length=100, default="", db_default="")
    host = models.CharField(_("host"), max_length=200, default="", db_default="")
    pid = models.IntegerField(_("pid"), default=0, db_default=0)
    role = models.CharField(_("role"), max_length=10, default="both", db_default="both")
    version = models.CharField(_("version"), max_length=40, default="", db_default="")
    queues = models.JSONField(_("queues"), default=list)
    """Names of the queues it serves."""
    slots = models.JSONField(_("slots"), default=dict)
    """Slots per execution: `{"thread": 8, "async": 100, "process": 2}`."""
    tz_data = models.JSONField(_("time zone data"), null=True, blank=True, default=None, db_default=None)
    """What it believes of each zone that schedules use, as a digest: two that differ would fire one schedule at two
    instants."""
    started_at = models.DateTimeField(_("started at"), db_default=Now())
    seen_at = models.DateTimeField(_("seen at"), db_default=Now())
    asleep = models.BooleanField(_("asleep"), default=False, db_default=False)
    """The mark a sleeper leaves so that a submit knows to send a hint."""

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return self.name or str(self.pk)
