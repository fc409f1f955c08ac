"""Recurring rules: which instants they name, and what is to be done about those that were missed."""

from __future__ import annotations

from jobs.domain.recurrence.cron import Cron
from jobs.domain.recurrence.every import Every
from jobs.domain.recurrence.plain import PlainRule, Rule, rule_from, to_plain

__all__ = ["Cron", "Every", "PlainRule", "Rule", "rule_from", "to_plain"]
