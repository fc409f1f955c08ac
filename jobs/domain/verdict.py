"""From how a body ended to how its attempt is closed and where its job goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.context import Progress
from jobs.domain.exhaustive import assert_never
from jobs.domain.loss import LostAttempt, after_loss, outcome_unknown
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.status import AttemptOutcome, Status


def closing_for(
    claim: Claim,
    outcome: Outcome,
    *,
    started_at: datetime | None,
    lingers: bool = False,
    progress: Progress | None = None,
) -> Closing:
    """For every ending but UNSTARTED, whose attempt is deleted instead.

    `outcome.retry_after_seconds` already holds the policy's word. An at-most-once body that did not end by
    itself is never handed back (promise G4).
    """
    closing = Closing(
        attempt_id=claim.attempt_id,
        job_id=claim.job_id,
        task=claim.task,
        number=claim.number,
        outcome=AttemptOutcome.COMPLETED,
        status=Status.COMPLETED,
        started_at=started_at,
        lingers=lingers,
        progress=progress,
        reason=outcome.reason,
        result=outcome.result,
        failure=outcome.failure,
        log=outcome.log,
    )
    match outcome.ending:
        case Ending.COMPLETED:
            return closing
        case Ending.FAILED | Ending.TASK_NOT_FOUND:
            return _failed(replace(closing, outcome=AttemptOutcome.FAILED, status=Status.FAILED), outcome)
        case Ending.TIMED_OUT:
            closing = replace(closing, outcome=AttemptOutcome.TIMED_OUT, status=Status.TIMED_OUT)
            return _unknown(closing, "it timed out") if claim.at_most_once else _failed(closing, outcome)
        case Ending.CANCELLED:
            return replace(closing, outcome=AttemptOutcome.CANCELLED, status=Status.CANCELLED)
        case Ending.SNOOZED:
            closing = replace(closing, outcome=AttemptOutcome.INTERRUPTED, status=Status.SCHEDULED, snoozes=1)
            return replace(closing, delay_seconds=outcome.retry_after_seconds or 0.0)
        case Ending.INTERRUPTED:
            # Not pending while its call goes on here: the claim does not look at lingering ones, the promotion does.
            status = Status.SCHEDULED if lingers else Status.PENDING
            closing = replace(closing, outcome=AttemptOutcome.INTERRUPTED, status=status, interruptions=1)
            return _unknown(closing, "its worker stopped") if claim.at_most_once else closing
        case Ending.LOST:
            lost = LostAttempt(
                attempt_id=claim.attempt_id,
                job_id=claim.job_id,
                task=claim.task,
                number=claim.number,
                losses=claim.losses,
                max_lost=claim.max_lost,
                at_most_once=claim.at_most_once,
                started=True,
            )
            return replace(after_loss(lost, outcome.reason), started_at=started_at, progress=progress, log=outcome.log)
        case Ending.UNSTARTED:
            raise AssertionError(f"attempt {claim.attempt_id} never began: its row is deleted, not closed")
        case _:
            assert_never(outcome.ending)


def _failed(closing: Closing, outcome: Outcome) -> Closing:
    closing = replace(closing, failures=1)
    if outcome.retry_after_seconds is None:
        return closing
    return replace(closing, status=Status.RETRY_WAIT, delay_seconds=outcome.retry_after_seconds)


def _unknown(closing: Closing, why: str) -> Closing:
    return replace(outcome_unknown(closing, why), interruptions=0)
