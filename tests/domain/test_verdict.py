"""How an ending closes its attempt and moves its job (promises G4, G6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.loss import LostAttempt, after_loss
from jobs.domain.outcome import Ending, Failure, Outcome
from jobs.domain.status import LEGAL_MOVES, AttemptOutcome, Status
from jobs.domain.verdict import closing_for

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)
CLAIM = Claim(
    attempt_id=7,
    job_id=3,
    number=1,
    task="t",
    queue="q",
    execution=Execution.THREAD,
    arguments={"args": [], "kwargs": {}},
    failures=0,
    losses=0,
    snoozes=0,
    max_retries=0,
    max_lost=3,
    retry_base_seconds=1.0,
    retry_max_seconds=300.0,
    retry_jitter=True,
    timeout_seconds=None,
    at_most_once=False,
    store_result=True,
    expires_at=None,
    claimed_at=NOW,
    unknown_since=None,
)
FAILURE = Failure("a.B", "m", "t")


def close(ending: Ending, claim: Claim = CLAIM, **outcome: Any) -> Closing:
    return closing_for(claim, Outcome(ending, **outcome), started_at=NOW)


@pytest.mark.parametrize(
    ("ending", "retry", "outcome", "status", "failures"),
    [
        (Ending.COMPLETED, None, AttemptOutcome.COMPLETED, Status.COMPLETED, 0),
        (Ending.FAILED, None, AttemptOutcome.FAILED, Status.FAILED, 1),
        (Ending.FAILED, 2.5, AttemptOutcome.FAILED, Status.RETRY_WAIT, 1),
        (Ending.FAILED, 0.0, AttemptOutcome.FAILED, Status.RETRY_WAIT, 1),
        (Ending.TIMED_OUT, None, AttemptOutcome.TIMED_OUT, Status.TIMED_OUT, 1),
        (Ending.TIMED_OUT, 1.0, AttemptOutcome.TIMED_OUT, Status.RETRY_WAIT, 1),
        (Ending.CANCELLED, None, AttemptOutcome.CANCELLED, Status.CANCELLED, 0),
        (Ending.SNOOZED, 60.0, AttemptOutcome.INTERRUPTED, Status.SCHEDULED, 0),
        (Ending.INTERRUPTED, None, AttemptOutcome.INTERRUPTED, Status.PENDING, 0),
        (Ending.LOST, None, AttemptOutcome.LOST, Status.PENDING, 0),
        (Ending.TASK_NOT_FOUND, None, AttemptOutcome.FAILED, Status.FAILED, 1),
    ],
)
def test_each_ending(
    ending: Ending, retry: float | None, outcome: AttemptOutcome, status: Status, failures: int
) -> None:
    closing = close(ending, retry_after_seconds=retry)
    assert (closing.outcome, closing.status, closing.failures) == (outcome, status, failures)
    assert closing.delay_seconds == (retry if status in (Status.RETRY_WAIT, Status.SCHEDULED) else None)
    assert closing.status in LEGAL_MOVES[Status.RUNNING]


@pytest.mark.parametrize("ending", [Ending.TIMED_OUT, Ending.INTERRUPTED, Ending.LOST])
def test_an_at_most_once_body_that_did_not_end_by_itself_is_never_run_again(ending: Ending) -> None:
    closing = close(ending, replace(CLAIM, at_most_once=True, max_retries=9), retry_after_seconds=1.0)
    assert (closing.status, closing.reason, closing.delay_seconds) == (Status.FAILED, "outcome unknown", None)
    assert closing.failure is not None
    assert closing.failure.exception_class == "jobs.OutcomeUnknown"


def test_an_at_most_once_exception_may_be_retried_since_its_outcome_is_known() -> None:
    assert close(Ending.FAILED, replace(CLAIM, at_most_once=True), retry_after_seconds=1.0).status is Status.RETRY_WAIT


def test_interruptions_losses_and_snoozes_are_counted_apart_from_failures() -> None:
    counts = {
        ending: (one.failures, one.losses, one.snoozes, one.interruptions)
        for ending in (Ending.LOST, Ending.SNOOZED, Ending.INTERRUPTED)
        if (one := close(ending))
    }
    assert counts == {
        Ending.LOST: (0, 1, 0, 0),
        Ending.SNOOZED: (0, 0, 1, 0),
        Ending.INTERRUPTED: (0, 0, 0, 1),
    }


@pytest.mark.parametrize(("losses", "status"), [(0, Status.PENDING), (2, Status.PENDING), (3, Status.FAILED)])
def test_a_lost_job_runs_again_in_a_child_process_at_most_max_lost_times(losses: int, status: Status) -> None:
    lost = LostAttempt(1, 2, "t", 1, losses, max_lost=3, at_most_once=False, started=True)
    closing = after_loss(lost, "gone")
    assert closing.status is status
    assert closing.execution is (Execution.PROCESS if status is Status.PENDING else None)


def test_an_at_most_once_job_lost_before_its_body_began_waits_for_its_turn_again() -> None:
    closing = after_loss(LostAttempt(1, 2, "t", 1, 0, 3, at_most_once=True, started=False), "gone")
    assert (closing.status, closing.losses, closing.execution) == (Status.PENDING, 0, None)


def test_a_cancelled_closing_goes_nowhere_else() -> None:
    closing = close(Ending.FAILED, retry_after_seconds=5.0, failure=FAILURE).cancelled()
    assert (closing.status, closing.delay_seconds, closing.failure) == (Status.CANCELLED, None, FAILURE)


def test_an_interrupted_job_waits_while_its_call_goes_on() -> None:
    def status(lingers: bool) -> Status:
        return closing_for(CLAIM, Outcome(Ending.INTERRUPTED), started_at=NOW, lingers=lingers).status

    assert (status(lingers=False), status(lingers=True)) == (Status.PENDING, Status.SCHEDULED)
