"""Run jobs inside a test: the real claim and record path, on the caller's connection, under a turned clock."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from jobs.conf import jobs_settings
from jobs.domain.claim import Claim
from jobs.domain.context import Context, Progress
from jobs.domain.execution import Execution
from jobs.domain.failure import system_failure
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import registry
from jobs.domain.status import Status
from jobs.domain.stop import StopSignal
from jobs.domain.verdict import closing_for
from jobs.engine import log_capture
from jobs.engine.body import Body, run
from jobs.store.claim import Owner, claim
from jobs.store.database import Database, database
from jobs.store.extend import begin, note_progress
from jobs.store.pick import Lane
from jobs.store.promote import expire, promote
from jobs.store.record import record
from jobs.store.unblock import unblock


@dataclass(slots=True)
class Ran:
    """What `run_jobs` did: `(job id, status it went to)` for each attempt, in order."""

    attempts: list[tuple[int, Status]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.attempts)

    def count(self, status: Status | str) -> int:
        return sum(went_to == status for _, went_to in self.attempts)


def run_jobs(*, now: datetime | None = None, max_jobs: int | None = None, queues: Iterable[str] | None = None) -> Ran:
    """Run what is due, one attempt at a time in the claim's order, and what those jobs enqueue, until nothing is due.

    Works inside a plain TestCase: no thread, no sleep, no process, the caller's connection; every execution runs
    right here. `now` turns the clock: pass a later instant and what is due by then runs (an aware datetime;
    default: the database's clock). Timeouts do not fire. `max_jobs` bounds the attempts.
    """
    db = database(jobs_settings().DATABASE, now)
    owner = Owner(uuid4(), "run_jobs")
    served = list(queues) if queues is not None else list(jobs_settings().QUEUES)
    log_capture.install()
    ran = Ran()
    while max_jobs is None or len(ran) < max_jobs:
        expire(db)
        promote(db)
        claimed = _claim_next(db, owner, served)
        if claimed is None and unblock(db):
            continue
        if claimed is None:
            break
        served.sort(key=lambda queue: queue == claimed.queue)
        outcome = _run(db, owner, claimed)
        closing = closing_for(claimed, outcome, started_at=claimed.claimed_at)
        recorded = record(db, owner.id, [closing], actor=owner.name)
        ran.attempts.append((claimed.job_id, recorded.closed.get(claimed.attempt_id, closing.status)))
    return ran


def _claim_next(db: Database, owner: Owner, queues: list[str]) -> Claim | None:
    for queue in queues:
        claims = claim(
            db,
            owner,
            [Lane(queue, execution, 1) for execution in Execution],
            limits=dict.fromkeys(Execution, (1, 0)),
            lease_seconds=3600.0,
            only_best=True,
        )
        if claims:
            return claims[0]
    return None


def _run(db: Database, owner: Owner, claimed: Claim) -> Outcome:
    definition = registry.find(claimed.task)
    if definition is None:
        failure = system_failure("jobs.TaskNotFound", f"task not found: {claimed.task}")
        return Outcome(Ending.TASK_NOT_FOUND, failure=failure, reason="task not found")
    if claimed.at_most_once:
        begin(db, owner.id, claimed.attempt_id)
    stop = StopSignal()
    context = Context.of(claimed, stop, lambda progress: _note(db, owner, claimed, progress))
    return run(Body(claimed, definition, context, stop, random.Random()), own_connections=False)


def _note(db: Database, owner: Owner, claimed: Claim, progress: Progress) -> None:
    note_progress(db, owner.id, {claimed.attempt_id: progress})
