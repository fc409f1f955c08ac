"""What a worker knows of a job it has claimed: plain values that cross threads and processes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobs.domain.execution import Execution
from jobs.domain.value import value


@value
class Claim:
    """One open attempt. `attempt_id` is the fence that every later write about this run names."""

    attempt_id: int
    job_id: int
    number: int
    """The attempt's number, from 1."""
    task: str
    queue: str
    execution: Execution
    arguments: dict[str, Any]
    """As stored: `{"args": [...], "kwargs": {...}}`, JSON values."""
    failures: int
    losses: int
    snoozes: int
    max_retries: int
    max_lost: int
    retry_base_seconds: float
    retry_max_seconds: float
    retry_jitter: bool
    timeout_seconds: float | None
    at_most_once: bool
    store_result: bool
    expires_at: datetime | None
    """Set only while the job has never started: expiry is before the first start only."""
    claimed_at: datetime
    """By the database's clock."""
    unknown_since: datetime | None
    """When a worker first handed the job back because it did not know its task."""
    scheduled_for: datetime | None = None
    """Of a schedule's job: the planned instant."""

    def __str__(self) -> str:
        """How every log line names a run: by the numbers that the admin shows."""
        return f"job {self.job_id}, attempt {self.number} ({self.task})"
