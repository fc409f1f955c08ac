"""Put ended jobs back into the queue on a person's word."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError

from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.models.guard import legal_from
from jobs.store.database import Database
from jobs.store.report import report

_ENDED = legal_from(Status.FAILED, Status.TIMED_OUT, Status.CANCELLED, to=Status.PENDING)
_ENDED = legal_from(Status.FAILED, Status.TIMED_OUT, Status.CANCELLED, to=Status.SCHEDULED)


@dataclass(slots=True)
class Requeued:
    moved: dict[int, Status] = field(default_factory=dict)
    key_held: dict[int, str] = field(default_factory=dict)
    """Refused: another active job holds this unique key."""


def requeue(
    db: Database,
    job_ids: Collection[int],
    *,
    at: datetime | None = None,
    delay_seconds: float = 0.0,
    actor: str = "",
) -> Requeued:
    """FAILED, TIMED_OUT and CANCELLED jobs go back, at an instant or after a delay; others are left as they are.

    Zeroes failures and losses, clears the cancel request and its cause, runs in the execution it was submitted
    with, and takes the unique key again: each row in a savepoint, refused when the key is held. Attempt numbers go
    on counting. A job whose old call still lingers in a thread waits as scheduled. Waits for rows that others hold.
    """
    requeued = Requeued()
    for job_id in sorted(job_ids):
        try:
            with db.transaction():
                _requeue_one(db, job_id, at, delay_seconds, actor, requeued)
        except IntegrityError:
            key = db.rows("SELECT unique_key FROM jobs_job WHERE id = %(id)s", id=job_id)[0][0]
            requeued.key_held[job_id] = key
    return requeued


def _requeue_one(
    db: Database, job_id: int, at: datetime | None, delay_seconds: float, actor: str, requeued: Requeued
) -> None:
    before = db.rows(
        f"SELECT status FROM jobs_job WHERE id = %(id)s AND status IN {_ENDED} {db.lock_and_wait}", id=job_id
    )
    if not before:
        return
    due_at = "%(at)s" if at else db.later("%(delay)s")
    lingers = f"EXISTS (SELECT 1 FROM jobs_attempt WHERE job_id = %(id)s AND lingering_until > {db.now})"
    rows = db.rows(
        f"""
        UPDATE jobs_job SET
               status = CASE WHEN {due_at} > {db.now} OR {lingers} THEN 'scheduled' ELSE 'pending' END,
               status_changed_at = {db.now}, run_at = {due_at}, ended_at = NULL, expires_at = NULL,
               failures = 0, losses = 0, cancel_requested_at = NULL, cause = '', unknown_since = NULL,
               unique_slot = unique_key,
               execution = COALESCE(
                   (SELECT submitted_execution FROM jobs_payload WHERE job_id = %(id)s), execution
               )
        WHERE id = %(id)s AND status IN {_ENDED}
        RETURNING status, task, attempts, status_changed_at
        """,
        id=job_id,
        at=at,
        delay=delay_seconds,
    )
    if not rows:
        return
    new, task, attempts, moved = rows[0]
    moved_at = db.read_instant(moved)
    assert moved_at is not None
    requeued.moved[job_id] = Status(new)
    report(db, lambda: [Move(job_id, task, Status(before[0][0]), Status(new), attempts or None, moved_at, actor)])
