"""Pause, resume, skip and run a schedule on a person's word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs import recurring
from jobs.conf import jobs_settings
from jobs.domain.errors import JobsError
from jobs.domain.text import class_path, first_line, short_class
from jobs.models import Schedule
from jobs.schedule_words import clock

logger = logging.getLogger(__name__)


class Refused(Exception):
    """Nothing was done; the message says why."""


@dataclass(frozen=True, slots=True)
class Done:
    message: str
    logged: str


@dataclass(frozen=True, slots=True)
class ScheduleVerb:
    name: str
    permission: str
    run: Callable[[Schedule, Mapping[str, Any], str], Done]
    """Given the row, what was posted, and who did. Raises Refused."""


class PauseForm(forms.Form):
    until = forms.DateTimeField(
        label=gettext_lazy("Until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    reason = forms.CharField(label=gettext_lazy("Reason"), required=False, max_length=200)

    def clean_until(self) -> Any:
        until = self.cleaned_data["until"]
        if until is not None and until <= timezone.now():
            raise forms.ValidationError(_("that is past already"))
        return until


def _pause(row: Schedule, posted: Mapping[str, Any], actor: str) -> Done:
    form = PauseForm(posted)
    if not form.is_valid():
        raise Refused("; ".join(f"{form[name].label}: {errors[0]}" for name, errors in form.errors.items()))
    until, reason = form.cleaned_data["until"], form.cleaned_data["reason"]
    recurring.pause(row.name, until=until, actor=actor, reason=reason)
    if until is None:
        return Done(_("It is paused until somebody resumes it."), "Paused.")
    at = clock(until, timezone.get_current_timezone())
    return Done(_("It is paused until %s.") % at, f"Paused until {at}.")


def _resume(row: Schedule, posted: Mapping[str, Any], actor: str) -> Done:
    recurring.resume(row.name)
    return Done(_("It goes on with its next instant."), "Resumed.")


def _skip(row: Schedule, posted: Mapping[str, Any], actor: str) -> Done:
    with transaction.atomic(using=jobs_settings().DATABASE):
        now = Schedule.objects.using(jobs_settings().DATABASE).select_for_update().get(pk=row.pk)
        if now.next_run_at is None or now.next_run_at.isoformat() != posted.get("planned"):
            raise Refused(_("Its next instant is another one by now: look again."))
        recurring.skip_next(row.name, actor=actor, reason=posted.get("reason", ""))
    at = clock(now.next_run_at, timezone.get_current_timezone())
    return Done(_("No job will be made for %s.") % at, f"Asked to skip {at}.")


def _unskip(row: Schedule, posted: Mapping[str, Any], actor: str) -> Done:
    recurring.skip_next(row.name, actor=actor, skip=False)
    return Done(_("The next one is not skipped."), "Took the skip back.")


def _run(row: Schedule, posted: Mapping[str, Any], actor: str) -> Done:
    try:
        job = recurring.run_now(row.name, actor=actor)
    except JobsError as error:
        raise Refused(str(error)) from None
    except Exception as error:  # a factory is project code, and may raise anything
        logger.exception("schedule %r: its job cannot be made", row.name)
        raise Refused(f"{short_class(class_path(type(error)))}: {first_line(str(error))}") from None
    page = reverse("admin:jobs_job_change", args=[job.pk])
    return Done(format_html(_('Job <a href="{}">#{}</a> was made.'), page, job.pk), f"Ran it now: job #{job.pk}.")


PAUSE = "jobs.pause_schedule"
VERBS = {
    verb.name: verb
    for verb in (
        ScheduleVerb("pause", PAUSE, _pause),
        ScheduleVerb("resume", PAUSE, _resume),
        ScheduleVerb("skip", PAUSE, _skip),
        ScheduleVerb("unskip", PAUSE, _unskip),
        ScheduleVerb("run", "jobs.run_schedule", _run),
    )
}
