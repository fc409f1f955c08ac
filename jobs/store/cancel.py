"""Cancel jobs: end those that wait, ask those that run."""

from __future__ import annotations

from collections.abc import Collection

from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.domain.text import clean_text
from jobs.models.guard import legal_from
from jobs.store.database import Database
from jobs.store.report import report

_WAITING = legal_from(Status.BLOCKED, Status.SCHEDULED, Status.PENDING, Status.RETRY_WAIT, to=Status.CANCELLED)
_UNFINISHED = legal_from(
    Status.BLOCKED, Status.SCHEDULED, Status.PENDING, Status.RETRY_WAIT, Status.RUNNING, to=Status.CANCELLED
)


def cancel(
    db: Database, job_ids: Collection[int], *, reason: str = "", actor: str = "", running: bool = True
) -> dict[int, Status]:
    """The accepted jobs: id to CANCELLED (ended by this call) or RUNNING (asked to stop).

    ONE update over every unfinished status: a job that flips between RUNNING and PENDING slips between two. Waits
    for rows that others hold, in the order of their ids. `running=False` leaves running jobs alone.
    """
    statuses = _UNFINISHED if running else _WAITING
    cause = f"cancelled by {actor}" if actor else "cancelled"
    with db.transaction():
        before = db.rows(
            f"""
            SELECT id, status FROM jobs_job WHERE id {db.members("ids")} AND status IN {statuses}
            ORDER BY id {db.lock_and_wait}
            """,
            ids=sorted(job_ids),
        )
        old: dict[int, str] = dict(before)
        # Exactly the locked: one that was requeued in between would move without a word.
        rows = db.rows(
            f"""
            UPDATE jobs_job SET
                   cancel_requested_at = COALESCE(cancel_requested_at, {db.now}),
                   cause = CASE WHEN cause = '' THEN %(cause)s ELSE cause END,
                   status_changed_at = {db.now},
                   status = CASE WHEN status = 'running' THEN status ELSE 'cancelled' END,
                   ended_at = CASE WHEN status = 'running' THEN NULL ELSE {db.now} END,
                   unique_slot = CASE WHEN status = 'running' THEN unique_slot END
            WHERE id {db.members("ids")} AND status IN {statuses}
            RETURNING id, task, status, attempts, status_changed_at
            """,
            ids=sorted(old),
            cause=clean_text(f"{cause}: {reason}" if reason else cause, 200),
        )
        report(
            db,
            lambda: [
                Move(job_id, task, Status(old[job_id]), Status.CANCELLED, attempts or None, moved_at, actor)
                for job_id, task, new, attempts, at in rows
                if new == Status.CANCELLED and (moved_at := db.read_instant(at)) is not None
            ],
        )
    return {row[0]: Status(row[2]) for row in rows}
