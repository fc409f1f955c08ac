"""Let the next job of a schedule go when the earlier ones have ended."""

from __future__ import annotations

from jobs.domain.move import Move
from jobs.domain.status import WAITING, Status
from jobs.models.guard import legal_from
from jobs.store.cancel import cancel
from jobs.store.database import Database
from jobs.store.report import report

_BLOCKED = legal_from(Status.BLOCKED, to=Status.PENDING)
_BLOCKED = legal_from(Status.BLOCKED, to=Status.SCHEDULED)
UNFINISHED = "(" + ", ".join(f"'{status}'" for status in (*WAITING, Status.RUNNING)) + ")"

_NONE_EARLIER = f"""
    NOT EXISTS (
        SELECT 1 FROM jobs_job AS earlier
        WHERE earlier.schedule_id = jobs_job.schedule_id AND earlier.id < jobs_job.id
          AND earlier.status IN {UNFINISHED}
    )
"""


def unblock(db: Database, *, limit: int = 1000, actor: str = "scheduler") -> int:
    """How many jobs may run now. Level-triggered: it may run at any time, any number of times.

    Locks the blocked jobs of which none earlier is unfinished, skipping held ones, then reads that once more, in a
    statement of its own: one that was read before the lock may have changed since.
    """
    with db.transaction():
        blocked = db.rows(
            f"""
            SELECT id FROM jobs_job WHERE status IN {_BLOCKED} AND schedule_id IS NOT NULL AND {_NONE_EARLIER}
            ORDER BY id LIMIT {limit} {db.lock}
            """
        )
        if not blocked:
            return 0
        moved = db.rows(
            f"""
            UPDATE jobs_job SET status = CASE WHEN run_at > {db.now} THEN 'scheduled' ELSE 'pending' END,
                   status_changed_at = {db.now}
            WHERE id {db.members("ids")} AND status IN {_BLOCKED} AND {_NONE_EARLIER}
            RETURNING id, task, status, status_changed_at
            """,
            ids=[row[0] for row in blocked],
        )
        report(
            db,
            lambda: [
                Move(job_id, task, Status.BLOCKED, Status(new), None, moved_at, actor)
                for job_id, task, new, at in moved
                if (moved_at := db.read_instant(at)) is not None
            ],
        )
        return len(moved)


def cancel_previous(db: Database, *, actor: str) -> int:
    """How many earlier jobs were cancelled, or asked to stop, in favour of a blocked one of a later look.

    Skips rows that others hold: the blocked job waits meanwhile, and this is asked again.
    """
    with db.transaction():
        rows = db.rows(
            f"""
            SELECT earlier.id FROM jobs_job AS earlier
            WHERE earlier.status IN {UNFINISHED} AND earlier.schedule_id IS NOT NULL
              AND earlier.cancel_requested_at IS NULL AND EXISTS (
                SELECT 1 FROM jobs_job AS later JOIN jobs_schedule ON jobs_schedule.id = later.schedule_id
                WHERE later.schedule_id = earlier.schedule_id AND later.id > earlier.id AND later.status = 'blocked'
                  AND later.submitted_at > earlier.submitted_at AND overlap = 'cancel_previous'
            )
            ORDER BY earlier.id {db.lock}
            """
        )
        if not rows:
            return 0
        return len(cancel(db, [row[0] for row in rows], reason="replaced by its schedule's next job", actor=actor))
