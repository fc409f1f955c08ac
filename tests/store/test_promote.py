"""An expiry holds until a job's first start, and ends nothing after it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.domain.outcome import Failure
from jobs.domain.status import AttemptOutcome, Status
from jobs.store.promote import expire
from tests.support.store import Bench

FAILURE = Failure("builtins.ValueError", "boom", "Traceback")


def waiting(bench: Bench, status: Status, *, started: bool) -> int:
    """A job in that waiting status that expires in ten seconds, and has begun before or not."""
    delay = 60.0 if status is Status.SCHEDULED and not started else 0.0
    receipt = bench.submit(expires_at=bench.now + timedelta(seconds=10), delay_seconds=delay)
    if status is Status.RETRY_WAIT or started:
        (claimed,) = bench.claim()
        how: dict[str, Any] = {"outcome": AttemptOutcome.FAILED, "failures": 1, "failure": FAILURE}
        bench.close(claimed, status, delay_seconds=60.0, started_at=bench.now if started else None, **how)
    assert bench.status(receipt.job_id) == status
    return receipt.job_id


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.PENDING, Status.RETRY_WAIT])
@pytest.mark.parametrize("started", [False, True], ids=["before the first start", "after it"])
def test_a_waiting_job_expires_before_its_first_start_only(bench: Bench, status: Status, started: bool) -> None:
    job_id = waiting(bench, status, started=started)
    bench.turn(9)
    assert expire(bench.db) == 0
    bench.turn(2)
    assert expire(bench.db) == (0 if started else 1)
    job = bench.job(job_id)
    assert (job.status, job.cause) == ((status, "") if started else (Status.CANCELLED, "expired"))
