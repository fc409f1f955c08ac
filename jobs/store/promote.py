"""Turn waiting jobs whose time has come into pending ones, and cancel those that waited too long."""

from __future__ import annotations

from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.models.guard import legal_from
from jobs.store.database import Database
from jobs.store.report import report

_WAITING = legal_from(Status.SCHEDULED, Status.RETRY_WAIT, to=Status.PENDING)
_EXPIRABLE = legal_from(Status.BLOCKED, Status.SCHEDULED, Status.PENDING, Status.RETRY_WAIT, to=Status.CANCELLED)


def promote(db: Database, *, limit: int = 1000, actor: str = "scheduler") -> int:
    """How many due jobs became pending. Locks them, skipping those that others hold.

    A job whose closed attempt still lingers in a thread waits until the call returns or its worker's lease ends.
    """
    with db.transaction():
        due = db.rows(
            f"""
            SELECT id, task, status, attempts FROM jobs_job
            WHERE status IN {_WAITING} AND run_at <= {db.now} AND NOT EXISTS (
                SELECT 1 FROM jobs_attempt WHERE job_id = jobs_job.id AND lingering_until > {db.now}
            )
            ORDER BY run_at LIMIT {limit} {db.lock}
            """
        )
        if not due:
            return 0
        moved = db.rows(
            f"""
            UPDATE jobs_job SET status = 'pending', status_changed_at = {db.now}
            WHERE id {db.members("ids")} AND status IN {_WAITING} RETURNING id, status_changed_at
            """,
            ids=sorted(row[0] for row in due),
        )
        _report(db, due, dict(moved), Status.PENDING, actor)
        return len(moved)


def expire(db: Database, *, limit: int = 1000, actor: str = "scheduler") -> int:
    """How many never started jobs were cancelled because their `expires_at` had passed."""
    with db.transaction():
        late = db.rows(
            f"""
            SELECT id, task, status, attempts FROM jobs_job
            WHERE status IN {_EXPIRABLE} AND expires_at IS NOT NULL AND started_at IS NULL AND expires_at <= {db.now}
            ORDER BY expires_at LIMIT {limit} {db.lock}
            """
        )
        if not late:
            return 0
        moved = db.rows(
            f"""
            UPDATE jobs_job SET status = 'cancelled', status_changed_at = {db.now}, ended_at = {db.now},
                   unique_slot = NULL, cause = 'expired'
            WHERE id {db.members("ids")} AND status IN {_EXPIRABLE} RETURNING id, status_changed_at
            """,
            ids=sorted(row[0] for row in late),
        )
        _report(db, late, dict(moved), Status.CANCELLED, actor)
        return len(moved)


def _report(
    db: Database, rows: list[tuple[int, str, str, int]], moved_at: dict[int, object], new: Status, actor: str
) -> None:
    def moves() -> list[Move]:
        return [
            Move(job_id, task, Status(old), new, attempts or None, at, actor)
            for job_id, task, old, attempts in rows
            if (at := db.read_instant(moved_at.get(job_id))) is not None
        ]

    report(db, moves)
