"""The store's verbs as a few lines of Python over dictionaries: what a state machine compares the tables with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.status import INITIAL, TERMINAL, WAITING, AttemptOutcome, Status

DUE_LATER = (Status.SCHEDULED, Status.RETRY_WAIT)
REQUEUED = (Status.FAILED, Status.TIMED_OUT, Status.CANCELLED)
assert Status.PENDING in INITIAL


@dataclass
class ModelJob:
    id: int
    status: Status
    run_at: datetime
    priority: int = 0
    expires_at: datetime | None = None
    at_most_once: bool = False
    max_lost: int = 3
    key: str | None = None
    until_started: bool = False
    execution: Execution = Execution.THREAD
    attempts: int = 0
    failures: int = 0
    losses: int = 0
    snoozes: int = 0
    interruptions: int = 0
    cancel_requested: bool = False
    started: bool = False
    unknown: bool = False
    ended_at: datetime | None = None
    slot: str | None = None

    def end(self, status: Status, now: datetime) -> None:
        self.status, self.ended_at, self.slot = status, now, None

    @property
    def counts(self) -> tuple[int, ...]:
        return self.attempts, self.failures, self.losses, self.snoozes, self.interruptions


@dataclass
class ModelAttempt:
    id: int
    job: ModelJob
    number: int
    worker: UUID
    lease_until: datetime
    outcome: AttemptOutcome = AttemptOutcome.RUNNING
    started: bool = False
    lingering_until: datetime | None = None

    @property
    def open(self) -> bool:
        return self.outcome is AttemptOutcome.RUNNING


@dataclass
class StoreModel:
    jobs: dict[int, ModelJob] = field(default_factory=dict)
    attempts: dict[int, ModelAttempt] = field(default_factory=dict)

    def holder(self, key: str | None) -> ModelJob | None:
        return next((job for job in self.jobs.values() if key is not None and job.slot == key), None)

    def lingers(self, job: ModelJob, now: datetime) -> bool:
        return any(
            one.job is job and one.lingering_until is not None and one.lingering_until > now
            for one in self.attempts.values()
        )

    def promote(self, now: datetime) -> int:
        due = [
            job for job in self.jobs.values()
            if job.status in DUE_LATER and job.run_at <= now and not self.lingers(job, now)
        ]  # fmt: skip
        for job in due:
            job.status = Status.PENDING
        return len(due)

    def expire(self, now: datetime) -> int:
        late = [job for job in self.jobs.values() if job.status in WAITING and self._expired(job, now)]
        for job in late:
            job.end(Status.CANCELLED, now)
        return len(late)

    def _expired(self, job: ModelJob, now: datetime) -> bool:
        return job.expires_at is not None and job.expires_at <= now and not job.started

    def claimable(self, execution: Execution, now: datetime) -> list[ModelJob]:
        ready = [
            job for job in self.jobs.values()
            if job.status is Status.PENDING and job.execution is execution and not self._expired(job, now)
        ]  # fmt: skip
        return sorted(ready, key=lambda job: (-job.priority, job.run_at, job.id))

    def open_attempt(self, attempt_id: int, job: ModelJob, worker: UUID, lease_until: datetime) -> None:
        job.status = Status.RUNNING
        job.attempts += 1
        if job.until_started:
            job.slot = None
        self.attempts[attempt_id] = ModelAttempt(attempt_id, job, job.attempts, worker, lease_until)

    def close(self, closing: Closing, worker: UUID | None, now: datetime, linger_seconds: float) -> Status | None:
        """Where the job went; None when the fence does not match."""
        attempt = self.attempts.get(closing.attempt_id)
        if attempt is None or not attempt.open or worker not in (None, attempt.worker):
            return None
        job, status = attempt.job, closing.status
        if job.cancel_requested and status in WAITING:
            closing, status = closing.cancelled(), Status.CANCELLED
        attempt.outcome = closing.outcome
        attempt.started = attempt.started or closing.started_at is not None
        attempt.lingering_until = now + timedelta(seconds=linger_seconds) if closing.lingers else None
        job.started = job.started or closing.started_at is not None
        job.failures += closing.failures
        job.losses += closing.losses
        job.snoozes += closing.snoozes
        job.interruptions += closing.interruptions
        job.execution = closing.execution or job.execution
        job.unknown = False
        if status in TERMINAL:
            job.end(status, now)
        else:
            job.status = status
        if closing.delay_seconds is not None:
            job.run_at = now + timedelta(seconds=closing.delay_seconds)
        return status

    def release(self, attempt_id: int, worker: UUID, now: datetime, task_unknown: bool) -> bool:
        attempt = self.attempts.get(attempt_id)
        if attempt is None or not attempt.open or attempt.worker != worker:
            return False
        job = attempt.job
        del self.attempts[attempt_id]
        job.attempts -= 1
        job.unknown = job.unknown or task_unknown
        if job.cancel_requested:
            job.end(Status.CANCELLED, now)
        else:
            job.status = Status.PENDING
        return True

    def cancel(self, job: ModelJob, now: datetime, running: bool) -> Status | None:
        if job.status in TERMINAL or (job.status is Status.RUNNING and not running):
            return None
        job.cancel_requested = True
        if job.status is Status.RUNNING:
            return Status.RUNNING
        job.end(Status.CANCELLED, now)
        return Status.CANCELLED

    def requeue(self, job: ModelJob, at: datetime | None, now: datetime) -> Status | None:
        """None: it was in another status, or its key is held."""
        if job.status not in REQUEUED or self.holder(job.key) is not None:
            return None
        later = at is not None and at > now
        job.status = Status.SCHEDULED if later or self.lingers(job, now) else Status.PENDING
        job.run_at, job.ended_at, job.expires_at, job.slot = at or now, None, None, job.key
        job.failures = job.losses = 0
        job.cancel_requested = job.unknown = False
        job.execution = Execution.THREAD
        return job.status

    def prune(self, age: timedelta, now: datetime) -> int:
        old = [
            job for job in self.jobs.values()
            if job.ended_at is not None and job.ended_at < now - age and not self.lingers(job, now)
        ]  # fmt: skip
        for job in old:
            del self.jobs[job.id]
            self.attempts = {key: one for key, one in self.attempts.items() if one.job is not job}
        return len(old)
