"""How an attempt is to be closed, and what becomes of its job: decided here, written by the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from jobs.domain.context import Progress
from jobs.domain.execution import Execution
from jobs.domain.outcome import Failure, LogLine
from jobs.domain.status import AttemptOutcome, Status
from jobs.domain.value import value


@value
class Closing:
    attempt_id: int
    job_id: int
    task: str
    number: int
    outcome: AttemptOutcome
    status: Status
    """Where the job goes; a waiting status becomes CANCELLED when a cancel request is found on the row."""
    delay_seconds: float | None = None
    """RETRY_WAIT and SCHEDULED: due that much later. None: the job keeps the instant it became due."""
    failures: int = 0
    losses: int = 0
    snoozes: int = 0
    interruptions: int = 0
    """Added to the job's counters."""
    execution: Execution | None = None
    """Where the next attempt runs, when that changes."""
    started_at: datetime | None = None
    lingers: bool = False
    """The thread still runs although the attempt is closed."""
    progress: Progress | None = None
    """The newest that the body reported: it may not have been written while the attempt was open."""
    reason: str = ""
    result: str | None = None
    failure: Failure | None = None
    log: tuple[LogLine, ...] = ()

    def __str__(self) -> str:
        """As the claim names it."""
        return f"job {self.job_id}, attempt {self.number} ({self.task})"

    def cancelled(self) -> Closing:
        """The same closing for a job that somebody asked to stop: no retry, no way back into the queue."""
        return replace(self, status=Status.CANCELLED, delay_seconds=None, execution=None)
