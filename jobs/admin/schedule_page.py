"""What the page of one schedule shows beside its form."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.timezone import get_current_timezone, get_current_timezone_name
from django.utils.translation import gettext as _

from jobs.admin.schedule_verbs import PauseForm
from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron
from jobs.models import Schedule
from jobs.schedule_words import State, by_two_clocks, planned, state_of, upcoming

SHOWN_INSTANTS = 5
SHOWN_OCCURRENCES = 20


def schedule_page(row: Schedule, now: datetime) -> dict[str, Any]:
    """The context of the template, as the row is stored."""
    state = state_of(row, now)
    return {
        "schedule": row,
        "state": state,
        "rule_words": row.describe(),
        "last_text": by_two_clocks(row, row.last_occurrence_at, get_current_timezone()),
        "occurrences": list(row.occurrences.order_by("-planned_at")[:SHOWN_OCCURRENCES]),
        "pause_form": PauseForm(),
        "site_zone": get_current_timezone_name(),
        "can_skip": state.name != "paused" and row.next_run_at is not None,
        **_instants(row, state, now),
    }


def _instants(row: Schedule, state: State, now: datetime) -> dict[str, Any]:
    try:
        rule = row.rule
        ahead = list(planned(rule, upcoming(row, now, SHOWN_INSTANTS), get_current_timezone()))
    except InvalidRule as error:
        return {"instants": [], "no_instants": str(error), "hint": ""}
    reasons = {
        "paused": _("None while it is paused."),
        "retired": _("None: the code declares it no longer."),
        "finished": _("None: its rule has come to its end."),
    }
    return {
        "instants": ahead,
        "no_instants": reasons.get(state.name, _("None.")),
        "hint": rule.hint() if isinstance(rule, Cron) else "",
    }
