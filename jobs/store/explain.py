"""Say where a job stands and what happens next, from the rows."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timezone

from jobs.domain.execution import Execution
from jobs.domain.status import TERMINAL, Status
from jobs.store.database import Database

COUNTED_AHEAD = 10_000
RUNSCHEDULER = "python manage.py runscheduler"
SLOTS_OF_ONE = {Execution.THREAD: "--threads 1", Execution.ASYNC: "--async 1", Execution.PROCESS: "--processes 1"}


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


@dataclass(frozen=True, slots=True)
class _Job:
    id: int
    status: Status
    task: str
    queue: str
    execution: Execution
    rank: float
    run_at: datetime | None
    ended_at: datetime | None
    cause: str
    attempts: int
    failures: int
    losses: int
    cancel_requested_at: datetime | None
    unknown_since: datetime | None

    def explained(self, reason: str, sentence: str, command: str = "") -> Explanation:
        return Explanation(self.id, self.status, reason, sentence, command)


def explain(
    db: Database, job_id: int, *, known_tasks: Collection[str], live_within_seconds: float
) -> Explanation | None:
    """None when there is no such job. Locks nothing; `known_tasks` are those of the asking process."""
    job = _read(db, job_id)
    if job is None:
        return None
    if job.status in TERMINAL:
        return _finished(job)
    if job.status is Status.RUNNING:
        return _running(db, job)
    return (
        _unknown(job, known_tasks)
        or _without_worker(db, job, live_within_seconds)
        or _without_time(job)
        or _in_line(db, job)
    )


def _read(db: Database, job_id: int) -> _Job | None:
    rows = db.rows(
        """
        SELECT status, task, queue, execution, rank, run_at, ended_at, cause, attempts, failures, losses,
               cancel_requested_at, unknown_since
        FROM jobs_job WHERE id = %(id)s
        """,
        id=job_id,
    )
    if not rows:
        return None
    status, task, queue, execution, rank, run_at, ended_at, cause, attempts, failures, losses, asked, unknown = rows[0]
    return _Job(
        id=job_id,
        status=Status(status),
        task=task,
        queue=queue,
        execution=Execution(execution),
        rank=rank,
        run_at=db.read_instant(run_at),
        ended_at=db.read_instant(ended_at),
        cause=cause,
        attempts=attempts,
        failures=failures,
        losses=losses,
        cancel_requested_at=db.read_instant(asked),
        unknown_since=db.read_instant(unknown),
    )


def _finished(job: _Job) -> Explanation:
    # The cause of a request to stop says nothing about a job that ended by itself all the same.
    why = job.cause if job.status is Status.CANCELLED or job.cancel_requested_at is None else ""
    after = f"after {_counted(job.attempts, 'attempt')}" if job.attempts else "without having started"
    word = job.status.value.replace("_", " ").capitalize()
    return job.explained("finished", f"{word} at {_shown(job.ended_at)} {after}{f': {why}' if why else ''}.")


def _running(db: Database, job: _Job) -> Explanation:
    rows = db.rows(
        f"""
        SELECT worker_name, COALESCE(started_at, claimed_at), lease_until, lease_until < {db.now} FROM jobs_attempt
        WHERE job_id = %(id)s AND outcome = 'running'
        """,
        id=job.id,
    )
    if not rows:  # it ended between the two statements
        return job.explained("running", "Running; it has just ended.")
    worker, since, lease_until, is_over = rows[0]
    sentence = f"Running since {_shown(db.read_instant(since))} on {worker}"
    if job.cancel_requested_at is not None:
        sentence += f"; asked to stop at {_shown(job.cancel_requested_at)}"
    if is_over:
        ended = _shown(db.read_instant(lease_until))
        sentence += f"; its lease ended at {ended}: a scheduler takes the job back if the worker stays silent"
    return job.explained("stopping" if job.cancel_requested_at else "running", f"{sentence}.")


def _unknown(job: _Job, known_tasks: Collection[str]) -> Explanation | None:
    if job.task not in known_tasks:
        missing = f"no task is named {job.task} in this process"
    elif job.unknown_since is not None:
        missing = f"a worker found no task named {job.task} at {_shown(job.unknown_since)}"
    else:
        return None
    todo = 'deploy the code that has it and restart the workers, or the job fails as "task not found"'
    return job.explained("unknown_task", f"{_stands(job)}; {missing}: {todo}.")


def _without_worker(db: Database, job: _Job, live_within_seconds: float) -> Explanation | None:
    live = _live_workers(db, live_within_seconds)
    serving = [slots for _, queues, slots in live if job.queue in queues]
    serve_it = f"{RUNSCHEDULER} --queues {shlex.quote(job.queue)}"
    if not serving:
        return job.explained("no_worker", f"{_stands(job)}; no live worker serves queue {job.queue}.", serve_it)
    if not any(slots.get(job.execution) for slots in serving):
        alone = "after a lost attempt it runs alone in a child process, and " if job.losses else ""
        missing = f"{alone}no live worker of queue {job.queue} has slots for {job.execution} jobs"
        return job.explained("no_worker", f"{_stands(job)}; {missing}.", f"{serve_it} {SLOTS_OF_ONE[job.execution]}")
    if job.status is not Status.PENDING and all(role == "worker" for role, _, _ in live):
        missing = "no live scheduler would notice that"
        return job.explained("no_worker", f"{_stands(job)}; {missing}.", f"{RUNSCHEDULER} --role scheduler")
    return None


def _live_workers(db: Database, within_seconds: float) -> list[tuple[str, list[str], dict[str, int]]]:
    """Role, queues, slots per execution. One that only schedules serves no queue."""
    rows = db.rows(
        f"SELECT role, queues, slots FROM jobs_worker WHERE seen_at >= {db.later('%(age)s')}", age=-within_seconds
    )
    return [(role, db.read_json(queues), db.read_json(slots)) for role, queues, slots in rows]


def _without_time(job: _Job) -> Explanation | None:
    reasons = {
        Status.SCHEDULED: "waits_for_time",
        Status.RETRY_WAIT: "waits_for_retry",
        Status.BLOCKED: "blocked",
    }
    reason = reasons.get(job.status)
    return None if reason is None else job.explained(reason, f"{_stands(job)}.")


def _in_line(db: Database, job: _Job) -> Explanation:
    rows = db.rows(
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue = %(queue)s AND execution = %(execution)s
            AND (rank, run_at, id) < (%(rank)s, %(run_at)s, %(id)s) LIMIT {COUNTED_AHEAD}
        ) AS ahead
        """,
        queue=job.queue,
        execution=job.execution.value,
        rank=job.rank,
        run_at=job.run_at,
        id=job.id,
    )
    ahead: int = rows[0][0]
    if not ahead:
        return job.explained("next", f"{_stands(job)}; it is the next {job.execution} job of queue {job.queue}.")
    counted = _counted(ahead, f"{job.execution} job") if ahead < COUNTED_AHEAD else f"{ahead} or more jobs"
    return job.explained("behind", f"{_stands(job)}; behind {counted} of queue {job.queue}.")


def _stands(job: _Job) -> str:
    """How a waiting job's sentence begins."""
    if job.status is Status.BLOCKED:
        return "Waits for other jobs to complete"
    if job.status is Status.RETRY_WAIT:
        return f"Failed {_counted(job.failures, 'time')}; tries again at {_shown(job.run_at)}"
    return f"Due {'since' if job.status is Status.PENDING else 'at'} {_shown(job.run_at)}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _shown(instant: datetime | None) -> str:
    return f"{instant.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC" if instant else "an unknown time"
