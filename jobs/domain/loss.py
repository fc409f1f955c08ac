"""What becomes of a job whose attempt was lost (promise G4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.failure import system_failure
from jobs.domain.status import AttemptOutcome, Status

WORKER_DIED = "jobs.WorkerDied"
OUTCOME_UNKNOWN = "jobs.OutcomeUnknown"


@dataclass(frozen=True, slots=True)
class LostAttempt:
    attempt_id: int
    job_id: int
    task: str
    number: int
    losses: int
    """Losses of the job before this one."""
    max_lost: int
    at_most_once: bool
    started: bool
    """Whether the body is known to have begun. Only at-most-once jobs write this before the body begins."""


def after_loss(lost: LostAttempt, reason: str) -> Closing:
    """Run again, alone in a child process, at most `max_lost` times; an at-most-once body is never run again."""
    closing = Closing(
        attempt_id=lost.attempt_id,
        job_id=lost.job_id,
        task=lost.task,
        number=lost.number,
        outcome=AttemptOutcome.LOST,
        status=Status.PENDING,
        losses=1,
        reason=reason,
    )
    if lost.at_most_once and lost.started:
        return outcome_unknown(closing, reason)
    if lost.at_most_once:
        return replace(closing, losses=0)
    if lost.losses >= lost.max_lost:
        message = f"worker died: lost {lost.losses + 1} times, max_lost is {lost.max_lost}; the last time: {reason}"
        failure = system_failure(WORKER_DIED, message)
        return replace(closing, status=Status.FAILED, failure=failure, reason="worker died")
    return replace(closing, execution=Execution.PROCESS)


def outcome_unknown(closing: Closing, why: str) -> Closing:
    """An at-most-once body that began and did not end by itself: never run again, whatever its retries."""
    message = f"outcome unknown: the body had begun, and an at-most-once job is never run again ({why})"
    failure = system_failure(OUTCOME_UNKNOWN, message)
    return replace(closing, status=Status.FAILED, delay_seconds=None, failure=failure, reason="outcome unknown")
