"""The statuses a job passes through and the moves that are legal between them."""

from __future__ import annotations

import enum


class Status(str, enum.Enum):
    BLOCKED = "blocked"
    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"

    __str__ = str.__str__


class AttemptOutcome(str, enum.Enum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    LOST = "lost"

    __str__ = str.__str__


# Tuples, never sets: they end up in constraints, and a set would make migrations flap.
INITIAL = (Status.BLOCKED, Status.SCHEDULED, Status.PENDING)
WAITING = (Status.BLOCKED, Status.SCHEDULED, Status.PENDING, Status.RETRY_WAIT)
TERMINAL = (Status.COMPLETED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED)
BADLY_ENDED = (Status.FAILED, Status.TIMED_OUT, Status.CANCELLED)

LEGAL_MOVES: dict[Status, tuple[Status, ...]] = {
    Status.BLOCKED: (Status.SCHEDULED, Status.PENDING, Status.CANCELLED),
    Status.SCHEDULED: (Status.PENDING, Status.CANCELLED),
    Status.PENDING: (Status.RUNNING, Status.SCHEDULED, Status.CANCELLED),
    Status.RUNNING: (
        Status.COMPLETED,
        Status.FAILED,
        Status.TIMED_OUT,
        Status.CANCELLED,
        Status.RETRY_WAIT,
        Status.PENDING,
        Status.SCHEDULED,
    ),
    Status.RETRY_WAIT: (Status.PENDING, Status.CANCELLED, Status.FAILED, Status.TIMED_OUT),
    Status.COMPLETED: (),
    Status.FAILED: (Status.PENDING, Status.SCHEDULED),
    Status.TIMED_OUT: (Status.PENDING, Status.SCHEDULED),
    Status.CANCELLED: (Status.PENDING, Status.SCHEDULED, Status.BLOCKED),
}
