"""Answer small questions about what is left to do, each from a partial index."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.store.database import Database


def anything_due(db: Database, queues: Sequence[str]) -> bool:
    """Whether a job in these queues runs, is pending, or is due though not yet promoted."""
    rows = db.rows(
        f"""
        SELECT EXISTS (SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue {db.members("queues")})
            OR EXISTS (SELECT 1 FROM jobs_job WHERE status = 'running' AND queue {db.members("queues")})
            OR EXISTS (
                SELECT 1 FROM jobs_job
                WHERE status IN ('scheduled', 'retry_wait') AND run_at <= {db.now} AND queue {db.members("queues")}
            )
        """,
        queues=list(queues),
    )
    return bool(rows[0][0])


def anything_unfinished(db: Database, queues: Sequence[str]) -> bool:
    """Whether a job in these queues runs or waits, for whatever."""
    rows = db.rows(
        f"""
        SELECT EXISTS (
            SELECT 1 FROM jobs_job WHERE queue {db.members("queues")}
            AND status IN ('blocked', 'scheduled', 'pending', 'retry_wait', 'running')
        )
        """,
        queues=list(queues),
    )
    return bool(rows[0][0])


def orphans(db: Database) -> int:
    """Running jobs without an open attempt: always 0, unless the promises are broken."""
    rows = db.rows(
        """
        SELECT count(*) FROM jobs_job WHERE status = 'running' AND NOT EXISTS (
            SELECT 1 FROM jobs_attempt WHERE job_id = jobs_job.id AND outcome = 'running'
        )
        """
    )
    return int(rows[0][0])
