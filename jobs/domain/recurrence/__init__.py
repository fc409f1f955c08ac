"""Recurring rules: which instants they name, and what is to be done about those that were missed."""

from __future__ import annotations

from jobs.domain.recurrence.cron import Cron
from jobs.domain.recurrence.every import Every

__all__ = ["Cron", "Every"]
