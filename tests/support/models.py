"""The side table that job bodies write: what really ran, whatever the scheduler believes."""

from __future__ import annotations

from django.db import models


class Effect(models.Model):
    label = models.CharField(max_length=200, db_index=True)
    job_id = models.BigIntegerField(null=True)
    attempt = models.IntegerField(null=True)
    pid = models.IntegerField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.label} (job {self.job_id}, attempt {self.attempt}, pid {self.pid})"


def effects(alias: str, label: str) -> int:
    """How many bodies left this mark."""
    return int(Effect.objects.using(alias).filter(label=label).count())
