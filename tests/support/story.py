"""What the rows tell of one job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jobs
from jobs.models import Attempt, Failure, Job
from jobs.store.count import orphans
from jobs.store.database import database


@dataclass(frozen=True)
class Story:
    status: str
    outcomes: list[str] = field(default_factory=list)
    """Of its attempts, in order."""
    exceptions: list[str] = field(default_factory=list)
    """Classes of its failures, in order, without their module."""
    result: Any = None


def story_of(row: Job | int) -> Story:
    job = jobs.get(row)
    failures = Failure.objects.using(job._state.db).filter(job_id=job.pk).order_by("attempt_id")
    return Story(
        status=job.status,
        outcomes=[attempt.outcome for attempt in attempts_of(job)],
        exceptions=[failure.exception_class.rpartition(".")[2] for failure in failures],
        result=job.result,
    )


def attempts_of(job: Job) -> list[Attempt]:
    return list(Attempt.objects.using(job._state.db).filter(job_id=job.pk).order_by("number"))


def failure_of(job: Job) -> Failure:
    """The last one."""
    failure: Failure | None = Failure.objects.using(job._state.db).filter(job_id=job.pk).order_by("attempt_id").last()
    assert failure is not None, f"job {job.pk} has no failure"
    return failure


def assert_sound(alias: str) -> None:
    """Nothing is half done: a running job has exactly one open attempt, any other none."""
    open_attempts = Attempt.objects.using(alias).filter(outcome="running").exclude(job__status="running")
    assert not open_attempts.exists()
    assert orphans(database(alias)) == 0
