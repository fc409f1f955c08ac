"""Hand back what was claimed but never began, by deleting its attempt."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.models.guard import legal_from
from jobs.store.database import Database
from jobs.store.record import lock_attempts
from jobs.store.report import report

_RUNNING = legal_from(Status.RUNNING, to=Status.PENDING)
_RUNNING = legal_from(Status.RUNNING, to=Status.CANCELLED)


def release(
    db: Database, worker_id: UUID, attempt_ids: Collection[int], *, actor: str, task_unknown: bool = False
) -> set[int]:
    """The attempt ids handed back. Their jobs are pending again at once, or cancelled when somebody asked for that.

    The attempt never ran, so its number is given back too. `task_unknown` notes since when workers do not know
    the task. Locks attempts, then jobs, in the order of their ids, skipping those that others hold.
    """
    with db.transaction():
        open_ids = lock_attempts(db, attempt_ids, "AND worker_id = %(worker_id)s", worker_id=worker_id)
        jobs = db.rows(
            f"""
            SELECT id FROM jobs_job WHERE status IN {_RUNNING} AND id IN (
                SELECT job_id FROM jobs_attempt WHERE id {db.members("ids")}
            ) ORDER BY id {db.lock}
            """,
            ids=sorted(open_ids),
        )
        job_ids = sorted(row[0] for row in jobs)
        if not job_ids:
            return set()
        deleted = db.rows(
            f"DELETE FROM jobs_attempt WHERE id {db.members('ids')} AND job_id {db.members('jobs')} RETURNING id",
            ids=sorted(open_ids),
            jobs=job_ids,
        )
        unknown_since = f"COALESCE(unknown_since, {db.now})" if task_unknown else "unknown_since"
        moved = db.rows(
            f"""
            UPDATE jobs_job SET attempts = attempts - 1, status_changed_at = {db.now}, unknown_since = {unknown_since},
                   status = CASE WHEN cancel_requested_at IS NULL THEN 'pending' ELSE 'cancelled' END,
                   ended_at = CASE WHEN cancel_requested_at IS NULL THEN NULL ELSE {db.now} END,
                   unique_slot = CASE WHEN cancel_requested_at IS NULL THEN unique_slot END
            WHERE id {db.members("ids")} AND status IN {_RUNNING}
            RETURNING id, task, status, attempts, status_changed_at
            """,
            ids=job_ids,
        )
        report(
            db,
            lambda: [
                Move(job_id, task, Status.RUNNING, Status(new), attempts + 1, moved_at, actor)
                for job_id, task, new, attempts, at in moved
                if (moved_at := db.read_instant(at)) is not None
            ],
        )
        return {row[0] for row in deleted}


def open_attempts(db: Database, worker_id: UUID) -> set[int]:
    """The ids of every open attempt of this worker, held by the process or not. Locks nothing."""
    rows = db.rows(
        "SELECT id FROM jobs_attempt WHERE worker_id = %(worker_id)s AND outcome = 'running'", worker_id=worker_id
    )
    return {row[0] for row in rows}
