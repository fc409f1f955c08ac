"""What the newest attempts of a page of jobs say: why they failed, how far they are, whether their worker lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import BooleanField, Case, F, Q, Value, When
from django.db.models.functions import Now

from jobs.domain.status import AttemptOutcome
from jobs.models import Attempt, Job

_COLUMNS = ("number", "outcome", "progress_done", "progress_total", "failure__exception_class")

IS_SILENT: Any = Case(
    # By the database's clock, like every decision about a lease.
    When(Q(outcome=AttemptOutcome.RUNNING.value, lease_until__lt=Now()), then=Value(True)),
    default=Value(False),
    output_field=BooleanField(),
)
"""An open attempt whose lease is over: its worker died, or cannot reach the database."""


def latest_attempts(jobs: Sequence[Job], alias: str) -> dict[int, Any]:
    """The newest attempt of each job that has one, by job id, with `is_silent`. One query, without tracebacks."""
    started = [job.pk for job in jobs if job.attempts]
    if not started:
        return {}
    newest = Attempt.objects.using(alias).filter(job__in=started, number=F("job__attempts"))
    return {
        one.job_id: one for one in newest.select_related("failure").only(*_COLUMNS, "job").annotate(is_silent=IS_SILENT)
    }


def exception_class(attempt: Attempt | None) -> str:
    """Empty when it did not fail with an exception."""
    try:
        return attempt.failure.exception_class if attempt is not None else ""
    except ObjectDoesNotExist:
        return ""
