"""An outcome is written once, and who writes it again is told whose the end on the row is."""

from __future__ import annotations

from uuid import uuid4

import pytest

from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.loss import LostAttempt, after_loss
from jobs.domain.outcome import Failure
from jobs.domain.status import AttemptOutcome, Status
from jobs.store.reclaim import overdue, reclaim
from jobs.store.record import record
from tests.support.store import Bench

FAILURE = Failure("builtins.ValueError", "boom", "Traceback")


def retried(claimed: Claim) -> Closing:
    return Closing(
        claimed.attempt_id, claimed.job_id, claimed.task, claimed.number, AttemptOutcome.FAILED, Status.RETRY_WAIT,
        failures=1, failure=FAILURE, delay_seconds=20.0,
    )  # fmt: skip


@pytest.fixture
def claimed(bench: Bench) -> Claim:
    bench.submit()
    (claimed,) = bench.claim()
    return claimed


def test_the_same_end_written_again_counts_once_and_is_known_as_ones_own(bench: Bench, claimed: Claim) -> None:
    for _ in range(3):
        again = record(bench.db, bench.owner.id, [retried(claimed)], actor="")
    assert (again.closed, again.lost, again.skipped) == ({}, set(), set())
    assert again.written_before == {claimed.attempt_id}
    job = bench.job(claimed.job_id)
    assert (job.status, job.failures) == (Status.RETRY_WAIT, 1)


def test_another_end_than_the_one_written_is_lost(bench: Bench, claimed: Claim) -> None:
    bench.close(claimed, Status.COMPLETED)
    late = record(bench.db, bench.owner.id, [retried(claimed)], actor="")
    assert (late.closed, late.written_before, late.lost) == ({}, set(), {claimed.attempt_id})
    assert bench.status(claimed.job_id) == Status.COMPLETED


def test_the_same_end_of_another_worker_is_lost(bench: Bench, claimed: Claim) -> None:
    record(bench.db, bench.owner.id, [retried(claimed)], actor="")
    other = record(bench.db, uuid4(), [retried(claimed)], actor="")
    assert (other.closed, other.written_before, other.lost) == ({}, set(), {claimed.attempt_id})


def test_a_loss_that_a_sweeper_wrote_first_is_not_ones_own(bench: Bench, claimed: Claim) -> None:
    """A worker records a loss too, when its child process dies."""
    lost = LostAttempt(claimed.attempt_id, claimed.job_id, claimed.task, claimed.number, 0, 3, False, True)
    bench.turn(61)
    assert reclaim(bench.db, overdue(bench.db)) == [claimed.attempt_id]
    late = record(bench.db, bench.owner.id, [after_loss(lost, "child died")], actor="")
    assert (late.closed, late.written_before, late.lost) == ({}, set(), {claimed.attempt_id})
    assert bench.job(claimed.job_id).losses == 1


def test_a_group_is_told_apart_attempt_by_attempt(bench: Bench) -> None:
    for _ in range(3):
        bench.submit()
    before, now, gone = bench.claim()
    bench.close(before, Status.RETRY_WAIT, outcome=AttemptOutcome.FAILED, failures=1, delay_seconds=20.0)
    bench.close(gone, Status.COMPLETED)
    recorded = record(bench.db, bench.owner.id, [retried(one) for one in (before, now, gone)], actor="")
    assert recorded.closed == {now.attempt_id: Status.RETRY_WAIT}
    assert recorded.written_before == {before.attempt_id}
    assert recorded.lost == {gone.attempt_id}
