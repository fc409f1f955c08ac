"""Say where a job stands and what happens next, from the rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from jobs.domain.status import TERMINAL, Status
from jobs.store.database import Database, Rows

COUNTED_AHEAD = 10_000


@dataclass(frozen=True, slots=True)
class Explanation:
    """`str(explanation)` is one sentence for people; `reason` is a stable word for programs."""

    job_id: int
    status: Status
    reason: str
    """finished, running, stopping, waits_for_time, waits_for_retry, blocked, unknown_task, no_worker, behind, next."""
    sentence: str
    command: str = ""
    """What to type when something is missing."""

    def __str__(self) -> str:
        return f"{self.sentence} Run: {self.command}" if self.command else self.sentence


def explain(
    db: Database, job_id: int, *, known_tasks: Collection[str], live_within_seconds: float
) -> Explanation | None:
    """None when there is no such job. Locks nothing; `known_tasks` are those of the asking process."""
    rows = db.rows(
        """
        SELECT status, task, queue, execution, run_at, ended_at, cause, rank, attempts, cancel_requested_at, failures
        FROM jobs_job WHERE id = %(id)s
        """,
        id=job_id,
    )
    if not rows:
        return None
    status, task, queue, execution, run_at, ended_at, cause, rank, attempts, cancel_requested_at, failures = rows[0]
    status = Status(status)
    if status in TERMINAL:
        tail = f": {cause}" if cause else ""
        sentence = f"{_word(status)} {_at(db, ended_at)} after {attempts} attempt{'s' * (attempts != 1)}{tail}."
        return Explanation(job_id, status, "finished", sentence)
    if status is Status.RUNNING:
        return _running(db, job_id, cancel_requested_at is not None)
    missing = _missing(db, job_id, status, task, queue, execution, known_tasks, live_within_seconds)
    if missing is not None:
        return missing
    if status is Status.SCHEDULED:
        return Explanation(job_id, status, "waits_for_time", f"Waits for its time: due {_at(db, run_at)}.")
    if status is Status.RETRY_WAIT:
        sentence = f"Failed {failures} time{'s' * (failures != 1)}; tries again {_at(db, run_at)}."
        return Explanation(job_id, status, "waits_for_retry", sentence)
    if status is Status.BLOCKED:
        return Explanation(job_id, status, "blocked", "Waits for other jobs to complete.")
    ahead = _ahead(db, queue, execution, rank, run_at, job_id)
    if ahead:
        count = f"{ahead}" if ahead < COUNTED_AHEAD else f"{COUNTED_AHEAD} or more"
        sentence = f"Due since {_at(db, run_at)}; {count} job{'s' * (ahead != 1)} of queue {queue} go first."
        return Explanation(job_id, status, "behind", sentence)
    return Explanation(job_id, status, "next", f"Due since {_at(db, run_at)}; it is the next of queue {queue}.")


def _running(db: Database, job_id: int, stopping: bool) -> Explanation:
    rows = db.rows(
        """
        SELECT worker_name, started_at, claimed_at, lease_until FROM jobs_attempt
        WHERE job_id = %(id)s AND outcome = 'running'
        """,
        id=job_id,
    )
    if not rows:
        return Explanation(job_id, Status.RUNNING, "running", "Running, without an open attempt: please report this.")
    worker, started_at, claimed_at, lease_until = rows[0]
    since = f"Running since {_at(db, started_at or claimed_at)} on {worker}"
    now = db.read_instant(db.rows(f"SELECT {db.now}")[0][0])
    lease = db.read_instant(lease_until)
    if now is not None and lease is not None and lease < now:
        return Explanation(
            job_id,
            Status.RUNNING,
            "running",
            f"{since}, whose lease ended {_at(db, lease_until)}: a scheduler takes the job back if it stays silent.",
        )
    if stopping:
        return Explanation(job_id, Status.RUNNING, "stopping", f"{since}; asked to stop.")
    return Explanation(job_id, Status.RUNNING, "running", f"{since}.")


def _missing(
    db: Database,
    job_id: int,
    status: Status,
    task: str,
    queue: str,
    execution: str,
    known_tasks: Collection[str],
    live_within_seconds: float,
) -> Explanation | None:
    if task not in known_tasks:
        sentence = (
            f"No task is named {task} in this process: deploy the code that has it, or the job fails as "
            '"task not found" once a worker has looked for it for ten minutes.'
        )
        return Explanation(job_id, status, "unknown_task", sentence)
    serving = _serving(db, live_within_seconds)
    if not any(queue in queues and slots.get(execution) for _, queues, slots in serving if _ != "scheduler"):
        what = f"queue {queue}" if not any(queue in queues for _, queues, _slots in serving) else f"{execution} jobs"
        command = f"python manage.py runscheduler --queues {queue}"
        return Explanation(job_id, status, "no_worker", f"No live worker serves {what}.", command)
    if not any(role != "worker" for role, _, _ in serving) and status is not Status.PENDING:
        command = "python manage.py runscheduler --role scheduler"
        return Explanation(job_id, status, "no_worker", "No live scheduler would notice that it is due.", command)
    return None


def _serving(db: Database, live_within_seconds: float) -> list[tuple[str, list[str], dict[str, int]]]:
    rows: Rows = db.rows(
        f"SELECT role, queues, slots FROM jobs_worker WHERE seen_at >= {db.later('%(age)s')}",
        age=-live_within_seconds,
    )
    return [(role, db.read_json(queues), db.read_json(slots)) for role, queues, slots in rows]


def _ahead(db: Database, queue: str, execution: str, rank: float, run_at: Any, job_id: int) -> int:
    rows = db.rows(
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue = %(queue)s AND execution = %(execution)s
            AND (rank, run_at, id) < (%(rank)s, %(run_at)s, %(id)s) LIMIT {COUNTED_AHEAD}
        ) AS ahead
        """,
        queue=queue,
        execution=execution,
        rank=rank,
        run_at=db.read_instant(run_at),
        id=job_id,
    )
    return int(rows[0][0])


def _word(status: Status) -> str:
    return status.value.replace("_", " ").capitalize()


def _at(db: Database, value: Any) -> str:
    at: datetime | None = db.read_instant(value)
    return f"at {at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC" if at is not None else "at an unknown time"
