"""Take jobs back from workers that stopped renewing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from jobs.domain.loss import LostAttempt, after_loss
from jobs.store.database import Database
from jobs.store.record import close, lock_attempts

Looks = dict[int, datetime]
"""Open attempts whose lease is over: attempt id to `lease_until`."""


def overdue(db: Database, *, limit: int = 1000) -> Looks:
    """One look at the open attempts whose lease is over. Locks nothing."""
    rows = db.rows(
        f"""
        SELECT id, lease_until FROM jobs_attempt WHERE outcome = 'running' AND lease_until < {db.now}
        ORDER BY job_id LIMIT {limit}
        """
    )
    return {attempt_id: at for attempt_id, until in rows if (at := db.read_instant(until)) is not None}


def reclaim(db: Database, seen: Mapping[int, datetime], *, actor: str = "scheduler") -> list[int]:
    """The attempt ids closed as lost: those of `seen` that are open with `lease_until` still as seen.

    The caller has looked twice, at least one renewal interval apart by its monotonic clock (promise G3). Their
    jobs go back, or end as "worker died" or "outcome unknown"; a cancel request makes them cancelled. Locks
    attempts, then jobs, in the order of their ids, skipping those that others hold.
    """
    if not seen:
        return []
    with db.transaction():
        locked = lock_attempts(db, seen, f"AND lease_until < {db.now}")
        rows = db.rows(
            f"""
            SELECT jobs_attempt.id, lease_until, worker_name, job_id, number, task, losses, max_lost, at_most_once,
                   jobs_attempt.started_at IS NOT NULL
            FROM jobs_attempt JOIN jobs_job ON jobs_job.id = job_id
            WHERE jobs_attempt.id {db.members("ids")} ORDER BY jobs_attempt.id
            """,
            ids=sorted(locked),
        )
        closings = []
        for attempt_id, until, worker, job_id, number, task, losses, max_lost, at_most_once, started in rows:
            if db.read_instant(until) == seen[attempt_id]:
                lost = LostAttempt(
                    attempt_id, job_id, task, number, losses, max_lost, bool(at_most_once), bool(started)
                )
                closings.append(after_loss(lost, f"worker {worker} stopped renewing its lease"))
        return sorted(close(db, closings, actor, 0.0).closed)
