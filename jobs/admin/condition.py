"""How a job's condition reads: a word with what it is about, and the one time that matters."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.template.defaultfilters import date, floatformat
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from jobs.admin.call_text import short_name
from jobs.admin.latest_attempt import exception_class
from jobs.domain.exhaustive import assert_never
from jobs.domain.status import Status
from jobs.models import Attempt, Job


def condition(job: Job) -> SafeString:
    stopping = job.status == Status.RUNNING and job.cancel_requested_at is not None
    return badge("stopping" if stopping else job.status, _("Stopping") if stopping else job.get_status_display())


def condition_and_why(job: Job, latest: Any) -> SafeString:
    """`latest` is the job's newest attempt, with `is_silent`; None when it has none."""
    return beside(condition(job), _about(job, latest))


def outcome(attempt: Attempt) -> SafeString:
    return badge(attempt.outcome, attempt.get_outcome_display())


def no_sign_of_life() -> SafeString:
    hint = _("Its lease is over: a scheduler takes the job back if the worker stays silent.")
    return format_html('<span class="jobs-silent" title="{}">{}</span>', hint, _("no sign of life"))


def beside(word: SafeString, about: SafeString | str) -> SafeString:
    return format_html('{} <span class="jobs-about" dir="auto">{}</span>', word, about) if about else word


def _about(job: Job, latest: Any) -> SafeString | str:
    if job.status == Status.RUNNING and latest is not None:
        return no_sign_of_life() if latest.is_silent else progress(latest)
    if job.status in (Status.FAILED, Status.RETRY_WAIT):
        failed_with = exception_class(latest)
        return short_name(failed_with) if failed_with else job.cause
    return job.cause if job.status == Status.CANCELLED else ""


def progress(attempt: Attempt) -> str:
    """How far it is: `3 / 50`, or `3` when nobody said of how many."""
    if attempt.progress_done is None:
        return ""
    done = floatformat(attempt.progress_done)
    return f"{done} / {floatformat(attempt.progress_total)}" if attempt.progress_total else done


def badge(name: str, word: str) -> SafeString:
    """The stylesheet adds shape and colour; the word alone says everything."""
    return format_html('<span class="jobs-condition jobs-{}">{}</span>', name, word)


def moment(job: Job, now: datetime) -> SafeString:
    match Status(job.status):
        case Status.BLOCKED:
            return since(_("submitted"), job.submitted_at, now)
        case Status.SCHEDULED | Status.PENDING:
            return since(_("due"), job.run_at, now)
        case Status.RETRY_WAIT:
            return since(_("retry due"), job.run_at, now)
        case Status.RUNNING if job.cancel_requested_at is not None:
            return since(_("asked to stop"), job.cancel_requested_at, now)
        case Status.RUNNING:
            return since(_("claimed"), job.status_changed_at, now)
        case Status.COMPLETED | Status.FAILED | Status.TIMED_OUT | Status.CANCELLED:
            return since(_("ended"), job.ended_at, now)
        case status:
            assert_never(status)


def since(word: str, at: datetime | None, now: datetime) -> SafeString:
    """`word`, and how far away the instant is; the whole instant with its zone when pointed at."""
    if at is None:
        return format_html("{}", "")
    whole = date(localtime(at), "Y-m-d H:i:s T")
    return format_html('{} <time datetime="{}" title="{}">{}</time>', word, at.isoformat(), whole, distance(at, now))


def distance(at: datetime, now: datetime) -> str:
    if abs(at - now) < timedelta(seconds=1):
        return _("now")
    apart = _short(abs(at - now), at, now)
    return _("in %(apart)s") % {"apart": apart} if at > now else _("%(apart)s ago") % {"apart": apart}


def _short(apart: timedelta, at: datetime, now: datetime) -> str:
    seconds = apart.total_seconds()
    if apart < timedelta(minutes=1):
        return _("%(seconds)d s") % {"seconds": seconds}
    if apart < timedelta(hours=1):
        return _("%(minutes)d min") % {"minutes": seconds // 60}
    if apart < timedelta(days=1):
        return _("%(hours)d h") % {"hours": seconds // 3600}
    return timesince(min(at, now), max(at, now), depth=1)


def span(seconds: float) -> str:
    """A duration of a run: exact when it is short."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
