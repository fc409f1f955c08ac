"""The releases that were seen, by what they declare."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Release(models.Model):
    """A set of schedules as some release declared it in code, in the order in which they were first seen."""

    id = models.BigAutoField(primary_key=True)
    declarations = models.CharField(max_length=64, unique=True)
    """Digest of all declarations of a process."""
    first_seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.declarations[:12]
