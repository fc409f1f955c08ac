"""Say where a job stands and what happens next, from the rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.domain.execution import Execution
from jobs.domain.explanation import Explanation
from jobs.domain.outcome import Failure
from jobs.domain.status import TERMINAL, Status
from jobs.domain.text import instant_text
from jobs.store.database import Database
from jobs.store.workers import SeenWorker, lingering_calls, live_roles, seen_workers

COUNTED_AHEAD = 10_000
RUNSCHEDULER = "python manage.py runscheduler"
SLOTS_OF_ONE = {Execution.THREAD: "--threads 1", Execution.ASYNC: "--async 1", Execution.PROCESS: "--processes 1"}


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
    max_retries: int
    losses: int
    cancel_requested_at: datetime | None
    unknown_since: datetime | None

    def explained(self, reason: str, sentence: str, command: str = "") -> Explanation:
        return Explanation(self.id, self.status, reason, sentence, command)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the asking process knows beside the rows."""

    known_tasks: Collection[str]
    queues: Collection[str]
    """The declared ones."""
    renew_seconds: float
    """How often a worker that lives is heard from."""

    @property
    def live_within_seconds(self) -> float:
        return 1.5 * self.renew_seconds


def explain(db: Database, job_id: int, around: Surroundings) -> Explanation | None:
    """None when there is no such job. Locks nothing."""
    job = _read(db, job_id)
    if job is None:
        return None
    if job.status in TERMINAL:
        return _finished(db, job)
    if job.status is Status.RUNNING:
        return _running(db, job, around)
    if job.status is Status.BLOCKED:
        return _blocked(db, job)
    workers = seen_workers(db, live_within_seconds=around.live_within_seconds)
    live = [one for one in workers if one.is_live]
    return (
        _unknown(job, around.known_tasks)
        or _without_worker(job, around, workers, live)
        or _without_time(job)
        or _stuck(db, job, live)
        or _in_line(db, job)
    )


def _read(db: Database, job_id: int) -> _Job | None:
    rows = db.rows(
        """
        SELECT status, task, queue, execution, rank, run_at, ended_at, cause, attempts, failures, max_retries, losses,
               cancel_requested_at, unknown_since
        FROM jobs_job WHERE id = %(id)s
        """,
        id=job_id,
    )
    if not rows:
        return None
    (
        status,
        task,
        queue,
        execution,
        rank,
        run_at,
        ended_at,
        cause,
        attempts,
        failures,
        max_retries,
        losses,
        asked,
        unknown,
    ) = rows[0]
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
        max_retries=max_retries,
        losses=losses,
        cancel_requested_at=db.read_instant(asked),
        unknown_since=db.read_instant(unknown),
    )


def _finished(db: Database, job: _Job) -> Explanation:
    after = f"after {_counted(job.attempts, 'attempt')}" if job.attempts else "without having started"
    word = job.status.value.replace("_", " ").capitalize()
    why = _why(db, job)
    return job.explained("finished", f"{word} at {instant_text(job.ended_at)} {after}{f': {why}' if why else ''}.")


def _why(db: Database, job: _Job) -> str:
    if job.status is Status.COMPLETED:
        return ""
    if job.status is Status.CANCELLED:
        return job.cause
    rows = db.rows(
        """
        SELECT exception_class, message FROM jobs_failure WHERE job_id = %(id)s ORDER BY attempt_id DESC LIMIT 1
        """,
        id=job.id,
    )
    if not rows:
        # The cause of a request to stop says nothing about a job that ended by itself all the same.
        return job.cause if job.cancel_requested_at is None else ""
    exception_class, message = rows[0]
    failure = Failure(exception_class, message, "")
    return f"{str(failure).rstrip('.')}{_retries(job)}"


def _retries(job: _Job) -> str:
    retried = max(0, job.failures - 1)
    if retried < job.max_retries:
        return f" ({retried} of {_counted(job.max_retries, 'retry', 'retries')} used)"
    return f" ({_counted(retried, 'retry', 'retries')} used up)" if retried else ""


def _running(db: Database, job: _Job, around: Surroundings) -> Explanation:
    rows = db.rows(
        f"""
        SELECT worker_name, COALESCE(jobs_attempt.started_at, claimed_at), lease_until, lease_until < {db.now},
               seen_at, seen_at < {db.later("%(age)s")}
        FROM jobs_attempt LEFT JOIN jobs_worker ON jobs_worker.id = worker_id
        WHERE job_id = %(id)s AND outcome = 'running'
        """,
        id=job.id,
        age=-around.live_within_seconds,
    )
    if not rows:  # it ended between the two statements
        return job.explained("running", "Running; it has just ended.")
    worker, since, lease_until, is_over, seen_at, is_silent = rows[0]
    reason = "stopping" if job.cancel_requested_at else "running"
    sentence = f"Running since {instant_text(db.read_instant(since))} on {worker}"
    if job.cancel_requested_at is not None:
        sentence += f"; asked to stop at {instant_text(job.cancel_requested_at)}"
    if not is_over and not is_silent:
        return job.explained(reason, f"{sentence}.")
    lease_end = db.read_instant(lease_until)
    if is_silent:
        sentence += f", which has not been heard from since {instant_text(db.read_instant(seen_at))}"
    else:
        sentence += f"; its lease ended at {instant_text(lease_end)}"
    if not live_roles(db, within_seconds=around.live_within_seconds) & {"both", "scheduler"}:
        return job.explained(reason, f"{sentence}; no live scheduler is there to take the job back.", RUNSCHEDULER)
    if lease_end is not None and not is_over:
        by = lease_end + timedelta(seconds=2 * around.renew_seconds)
        return job.explained(reason, f"{sentence}; if it stays silent, the job is taken back by {instant_text(by)}.")
    return job.explained(reason, f"{sentence}; if it stays silent, a scheduler takes the job back any moment.")


def _unknown(job: _Job, known_tasks: Collection[str]) -> Explanation | None:
    if job.task not in known_tasks:
        missing = f"no task is named {job.task} in this process"
    elif job.unknown_since is not None:
        missing = f"a worker found no task named {job.task} at {instant_text(job.unknown_since)}"
    else:
        return None
    todo = 'deploy the code that has it and restart the workers, or the job fails as "task not found"'
    return job.explained("unknown_task", f"{_stands(job)}; {missing} (is its app in INSTALLED_APPS?): {todo}.")


def _without_worker(
    job: _Job, around: Surroundings, workers: list[SeenWorker], live: list[SeenWorker]
) -> Explanation | None:
    serving = [one.slots for one in live if job.queue in one.queues]
    if not serving and job.queue not in around.queues:
        missing = f"queue {job.queue} is not declared: add it to JOBS['QUEUES'], and restart the workers"
        return job.explained("no_worker", f"{_stands(job)}; {missing}.")
    if not serving:
        heard = max(((one.seen_at, one.name) for one in workers if job.queue in one.queues), default=None)
        last = f" ({heard[1]} was last heard from at {instant_text(heard[0])})" if heard else ""
        return job.explained(
            "no_worker", f"{_stands(job)}; no live worker serves queue {job.queue}{last}.", RUNSCHEDULER
        )
    if not any(slots.get(job.execution) for slots in serving):
        alone = "after a lost attempt it runs alone in a child process, and " if job.losses else ""
        missing = f"{alone}no live worker of queue {job.queue} has slots for {job.execution} jobs"
        command = f"{RUNSCHEDULER} {SLOTS_OF_ONE[job.execution]}"
        return job.explained("no_worker", f"{_stands(job)}; {missing}.", command)
    if job.status is not Status.PENDING and all(one.role == "worker" for one in live):
        missing = "no live scheduler would notice that"
        return job.explained("no_worker", f"{_stands(job)}; {missing}.", f"{RUNSCHEDULER} --role scheduler")
    return None


def _stuck(db: Database, job: _Job, live: list[SeenWorker]) -> Explanation | None:
    lingering = lingering_calls(db, job.execution)
    slots = {one.id: one.slots.get(job.execution, 0) for one in live if job.queue in one.queues}
    if any(count > lingering.get(worker, 0) for worker, count in slots.items()):
        return None
    held = f"every {job.execution} slot of its live workers is held by a call that does not return"
    return job.explained("stuck", f"{_stands(job)}; {held}.", RUNSCHEDULER)


def _without_time(job: _Job) -> Explanation | None:
    reasons = {
        Status.SCHEDULED: "waits_for_time",
        Status.RETRY_WAIT: "waits_for_retry",
    }
    reason = reasons.get(job.status)
    return None if reason is None else job.explained(reason, f"{_stands(job)}.")


def _blocked(db: Database, job: _Job) -> Explanation:
    rows = db.rows(
        """
        SELECT earlier.id, earlier.status FROM jobs_job JOIN jobs_job AS earlier
          ON earlier.schedule_id = jobs_job.schedule_id AND earlier.id < jobs_job.id
         AND earlier.status IN ('blocked', 'scheduled', 'pending', 'running', 'retry_wait')
        WHERE jobs_job.id = %(id)s ORDER BY earlier.id LIMIT 1
        """,
        id=job.id,
    )
    if not rows:
        return job.explained("blocked", "Waits for nothing any more: a scheduler lets it go at its next look.")
    earlier, status = rows[0]
    words = str(status).replace("_", " ")
    return job.explained("blocked", f"Waits for job {earlier}, an earlier one of its schedule, to end ({words} now).")


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
    if job.status is Status.RETRY_WAIT:
        return f"Failed {_counted(job.failures, 'time')}; tries again at {instant_text(job.run_at)}"
    return f"Due {'since' if job.status is Status.PENDING else 'at'} {instant_text(job.run_at)}"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
