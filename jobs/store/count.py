"""Answer small questions about what is left to do, each from the head of a partial index."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.store.database import Database


def any_pending(queues: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The condition that a job in these queues is pending, with its parameters.

    One ordered look at the ready heap per queue. Asked with EXISTS over all queues, PostgreSQL takes the table to be
    full of pending rows, and reads it from its oldest end until it meets one.
    """
    looks = [
        f"(SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue = %(queue{number})s"
        " ORDER BY execution, rank, run_at, id LIMIT 1) IS NOT NULL"
        for number in range(len(queues))
    ]
    return f"({' OR '.join(looks) or 'false'})", {f"queue{number}": queue for number, queue in enumerate(queues)}


def anything_due(db: Database, queues: Sequence[str]) -> bool:
    """Whether a job in these queues runs, is pending, or is due though not yet promoted."""
    return _anything(db, queues, f"AND run_at <= {db.now}")


def anything_unfinished(db: Database, queues: Sequence[str]) -> bool:
    """Whether a job in these queues runs, or waits for its time. What is blocked waits for one that does."""
    return _anything(db, queues, "")


def _anything(db: Database, queues: Sequence[str], of_waiting: str) -> bool:
    pending, parameters = any_pending(queues)
    served = f"queue {db.members('queues')}"
    rows = db.rows(
        f"""
        SELECT {pending}
            OR (SELECT 1 FROM jobs_job WHERE status = 'running' AND {served} ORDER BY id LIMIT 1) IS NOT NULL
            OR (SELECT 1 FROM jobs_job WHERE status IN ('scheduled', 'retry_wait') AND {served} {of_waiting}
                ORDER BY run_at LIMIT 1) IS NOT NULL
        """,
        queues=list(queues),
        **parameters,
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
