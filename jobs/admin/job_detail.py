"""What the page of one job shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs import api
from jobs.admin.call_text import pretty
from jobs.admin.condition import beside, condition, no_sign_of_life, outcome, progress, span
from jobs.admin.latest_attempt import IS_SILENT
from jobs.conf import jobs_settings
from jobs.domain.registry import registry
from jobs.domain.status import BADLY_ENDED, TERMINAL, Status
from jobs.models import Attempt, Job, Payload, Schedule
from jobs.store.database import database
from jobs.store.workers import live_workers

SHOWN_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt as the page shows it."""

    attempt: Attempt
    outcome: str
    took: str
    progress: str
    failure: Any
    log: list[Any]
    is_open: bool
    """Whether its details are unfolded."""
    lingers: bool
    """Whether its thread may still run: it ended on paper, and its worker lives."""


def job_page(job: Job) -> dict[str, Any]:
    """The context of the template. Raises JobNotFound when the job was pruned meanwhile."""
    payload = Payload.objects.using(job._state.db).filter(pk=job.pk).first()
    runs = _runs(job)
    return {
        "job": job,
        "condition": condition(job),
        "explanation": api.explain(job),
        "arguments": pretty(payload.arguments) if payload else "",
        "result": _result(job),
        "options": list(_options(job, payload)),
        "counters": list(_counters(job)),
        "runs": runs,
        "hidden_attempts": max(0, job.attempts - len(runs)),
        "can_end": job.status not in TERMINAL and not (job.status == Status.RUNNING and job.cancel_requested_at),
        "can_go_back": job.status in BADLY_ENDED,
    }


def _runs(job: Job) -> list[Run]:
    newest = Attempt.objects.using(job._state.db).filter(job=job).select_related("failure", "captured_log")
    rows: list[Any] = list(newest.annotate(is_silent=IS_SILENT).order_by("-number")[:SHOWN_ATTEMPTS])
    living = _living_workers(rows)
    return [
        Run(
            attempt=attempt,
            outcome=beside(outcome(attempt), no_sign_of_life() if attempt.is_silent else ""),
            took=_took(attempt),
            progress=progress(attempt),
            failure=_beside(attempt, "failure"),
            log=getattr(_beside(attempt, "captured_log"), "lines", []),
            is_open=position == 0,
            lingers=attempt.lingering_until is not None and attempt.worker_id in living,
        )
        for position, attempt in enumerate(rows)
    ]


def _living_workers(attempts: Sequence[Attempt]) -> set[UUID]:
    """Asked only when one of the attempts may linger."""
    if all(one.lingering_until is None for one in attempts):
        return set()
    settings = jobs_settings()
    return live_workers(database(settings.DATABASE), within_seconds=settings.LEASE)


def _took(attempt: Attempt) -> str:
    if attempt.started_at is None or attempt.ended_at is None:
        return ""
    return span((attempt.ended_at - attempt.started_at).total_seconds())


def _beside(attempt: Attempt, name: str) -> Any:
    try:
        return getattr(attempt, name)
    except ObjectDoesNotExist:
        return None


def _result(job: Job) -> str | None:
    """None: it returned nothing, or its result is not kept."""
    try:
        return pretty(job.stored_result.value)
    except ObjectDoesNotExist:
        return None


def _options(job: Job, payload: Payload | None) -> Iterator[tuple[str, str | int | datetime]]:
    """What it was submitted with, without what was left out."""
    yield _("Queue"), job.queue
    yield _("Priority"), job.priority
    yield _("Execution"), _execution(job)
    yield _("Submitted at"), job.submitted_at
    if job.schedule_id is not None:
        schedule = Schedule.objects.using(job._state.db).filter(pk=job.schedule_id).first()
        yield _("Schedule"), schedule.name if schedule is not None else _("deleted meanwhile")
    yield (_("Was due at") if job.status in TERMINAL else _("Due at")), job.run_at
    for name, at in (
        (_("Planned for"), job.scheduled_for),
        (_("First started at"), job.started_at),
        (_("Ended at"), job.ended_at),
        (_("Deadline"), job.deadline),
        (_("Not started after"), job.expires_at),
        (_("Asked to stop at"), job.cancel_requested_at),
    ):
        if at is not None:
            yield name, at
    yield _("Timeout"), span(job.timeout_seconds) if job.timeout_seconds is not None else _("none")
    if job.at_most_once:
        yield _("Delivery"), _("at most once")
    if job.unique_key is not None:
        held = _("held by this job") if job.unique_slot is not None else _("not held any more")
        yield _("Unique key"), f"{job.unique_key} ({held})"
    for name, value in ((_("Tags"), payload.tags), (_("Meta"), payload.meta)) if payload else ():
        if value:
            yield name, pretty(value)


def _execution(job: Job) -> str:
    """With a word on why it is not the task's own: after a loss a job runs alone in a child process."""
    word = str(job.get_execution_display())
    definition = registry.find(job.task)
    moved = definition is not None and definition.options.execution != job.execution
    return _("%(execution)s (after a loss)") % {"execution": word} if job.losses and moved else word


def _counters(job: Job) -> Iterator[tuple[str, str]]:
    yield _("Attempts"), str(job.attempts)
    retries = ngettext("up to %d retry", "up to %d retries", job.max_retries) % job.max_retries
    yield _("Failures"), f"{job.failures} ({retries if job.max_retries else _('no retries')})"
    for name, count in (
        (_("Losses"), job.losses),
        (_("Snoozes"), job.snoozes),
        (_("Interruptions"), job.interruptions),
    ):
        if count:
            yield name, str(count)
