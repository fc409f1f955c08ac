"""Take jobs back from workers that stopped renewing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from jobs.domain.execution import Execution
from jobs.domain.loss import LostAttempt, after_loss
from jobs.domain.status import Status
from jobs.domain.text import instant_text
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


def tell_lost(db: Database, attempt_ids: Collection[int]) -> list[str]:
    """One line per attempt that was closed as lost: which job, whose, silent since when, and what becomes of it."""
    rows = db.rows(
        f"""
        SELECT jobs_attempt.id, job_id, number, task, worker_name, seen_at, lease_until, status, execution, cause
        FROM jobs_attempt JOIN jobs_job ON jobs_job.id = job_id LEFT JOIN jobs_worker ON jobs_worker.id = worker_id
        WHERE jobs_attempt.id {db.members("ids")} ORDER BY jobs_attempt.id
        """,
        ids=sorted(attempt_ids),
    )
    lines = []
    for _, job_id, number, task, worker, seen_at, lease_until, status, execution, cause in rows:
        silent = (
            f"silent since {instant_text(db.read_instant(seen_at))}"
            if seen_at
            else f"its lease ended at {instant_text(db.read_instant(lease_until))}"
        )
        what = _becomes(Status(status), Execution(execution), cause)
        lines.append(f"job {job_id}, attempt {number} ({task}) is lost: worker {worker}, {silent}; {what}")
    return lines


def _becomes(status: Status, execution: Execution, cause: str) -> str:
    if status is Status.PENDING:
        return "runs again in a child process" if execution is Execution.PROCESS else "runs again"
    return f"now {status}{f': {cause}' if cause else ''}"
