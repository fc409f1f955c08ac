"""What callers do with jobs that exist: get, cancel, requeue, explain; each with an async twin that only forwards."""

from __future__ import annotations

from datetime import datetime, timedelta

from asgiref.sync import sync_to_async

from jobs.conf import jobs_settings
from jobs.domain.duration import seconds_of
from jobs.domain.errors import InvalidOption, JobNotFound, UniqueKeyHeld
from jobs.domain.explanation import Explanation
from jobs.domain.options import MAX_DELAY_SECONDS, require_aware
from jobs.domain.registry import registry
from jobs.domain.status import Status
from jobs.domain.strict_json import LARGEST_INTEGER, SMALLEST_INTEGER
from jobs.engine.hints import hint_cancel, hint_due
from jobs.models import Job
from jobs.store.cancel import cancel as store_cancel
from jobs.store.database import Database, database
from jobs.store.explain import Surroundings
from jobs.store.explain import explain as store_explain
from jobs.store.requeue import requeue as store_requeue

JobOrId = Job | int


def get(job: JobOrId) -> Job:
    """The job as it is stored now. Raises JobNotFound."""
    try:
        found: Job = Job.objects.using(jobs_settings().DATABASE).get(pk=_id(job))
    except Job.DoesNotExist:
        raise _not_found(job) from None
    return found


def cancel(job: JobOrId, reason: str = "", *, running: bool = True, actor: str = "") -> bool:
    """True when this call ended the job or stored a request to stop it; False when it had ended or is unknown.

    A running job that ends in success before it notices stays completed. `running=False` leaves a running one
    alone. Waits for a transaction that holds the job's row.
    """
    db, job_id = _db(), _id(job)
    accepted = store_cancel(db, [job_id], reason=reason, actor=actor, running=running)
    if accepted.get(job_id) is Status.RUNNING:
        hint_cancel(db, job_id)
    return job_id in accepted


def requeue(
    job: JobOrId, *, run_at: datetime | None = None, delay: float | timedelta | None = None, actor: str = ""
) -> bool:
    """Put a failed, timed out or cancelled job back, now or later; its failures and losses count from zero again.

    False when it is in another status or unknown. Raises UniqueKeyHeld when another active job holds its key.
    """
    db, job_id = _db(), _id(job)
    if run_at is not None and delay is not None:
        raise InvalidOption("give run_at or delay, not both")
    requeued = store_requeue(
        db,
        [job_id],
        at=None if run_at is None else require_aware(run_at, "run_at", use_tz=True),
        delay_seconds=0.0 if delay is None else seconds_of(delay, "delay", at_most=MAX_DELAY_SECONDS),
        actor=actor,
    )
    if job_id in requeued.key_held:
        key = requeued.key_held[job_id]
        raise UniqueKeyHeld(f"job {job_id} stays as it is: another active job holds its unique key {key!r}")
    if requeued.moved:
        hint_due(db)
    return bool(requeued.moved)


def explain(job: JobOrId) -> Explanation:
    """Where the job stands and what happens next, in a sentence. Raises JobNotFound."""
    settings = jobs_settings()
    around = Surroundings(frozenset(registry.names()), settings.QUEUES, settings.RENEW)
    explanation = store_explain(_db(), _id(job), around)
    if explanation is None:
        raise _not_found(job)
    return explanation


async def aget(job: JobOrId) -> Job:
    return await sync_to_async(get)(job)


async def acancel(job: JobOrId, reason: str = "", *, running: bool = True, actor: str = "") -> bool:
    return await sync_to_async(cancel)(job, reason, running=running, actor=actor)


async def arequeue(
    job: JobOrId, *, run_at: datetime | None = None, delay: float | timedelta | None = None, actor: str = ""
) -> bool:
    return await sync_to_async(requeue)(job, run_at=run_at, delay=delay, actor=actor)


async def aexplain(job: JobOrId) -> Explanation:
    return await sync_to_async(explain)(job)


def _db() -> Database:
    return database(jobs_settings().DATABASE)


def _id(job: JobOrId) -> int:
    job_id = job.pk if isinstance(job, Job) else int(job)
    # No column holds it, and SQLite would not even compare it; 0 is nobody's id.
    return job_id if SMALLEST_INTEGER <= job_id <= LARGEST_INTEGER else 0


def _not_found(job: JobOrId) -> JobNotFound:
    return JobNotFound(
        f"there is no job {job.pk if isinstance(job, Job) else job}: it was never stored, or its retention is over"
    )
