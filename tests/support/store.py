"""Short words for store tests: submit, claim and close jobs at instants of one's own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Job
from jobs.store.claim import Owner, claim
from jobs.store.database import Database, database
from jobs.store.pick import Lane
from jobs.store.record import Recorded, record
from jobs.store.submit import Receipt, Submission, submit

START = datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc)


class Bench:
    """One database under a turned clock, with one worker."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.now = START
        self.owner = Owner(uuid4(), "worker-1")

    @property
    def db(self) -> Database:
        return database(self.alias, self.now)

    def turn(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def submit(self, *, arguments: str = '{"args": [], "kwargs": {}}', **options: Any) -> Receipt:
        return self.submit_all([self.submission(arguments=arguments, **options)])[0]

    def submission(self, *, arguments: str = '{"args": [], "kwargs": {}}', **options: Any) -> Submission:
        defaults: dict[str, Any] = {
            "task": "tests.work",
            "queue": "default",
            "execution": Execution.THREAD,
            "priority": 0,
        }
        return Submission(arguments=arguments, **{**defaults, **options})

    def submit_all(self, submissions: list[Submission]) -> list[Receipt]:
        return submit(self.db, submissions)

    def claim(
        self,
        free: int = 100,
        ahead: int = 0,
        *,
        queues: tuple[str, ...] = ("default",),
        lease: float = 60.0,
        owner: Owner | None = None,
        unknown_tasks: tuple[str, ...] = (),
    ) -> list[Claim]:
        lanes = [Lane(queue, execution, free, ahead) for execution in Execution for queue in queues]
        limits = dict.fromkeys(Execution, (free, ahead))
        return claim(
            self.db, owner or self.owner, lanes, limits=limits, lease_seconds=lease, unknown_tasks=unknown_tasks
        )

    def close(self, claimed: Claim, status: Status = Status.COMPLETED, **changes: Any) -> Recorded:
        outcome = changes.pop("outcome", None) or (
            AttemptOutcome(status.value) if status.value in set(AttemptOutcome) else AttemptOutcome.FAILED
        )
        closing = Closing(claimed.attempt_id, claimed.job_id, claimed.task, claimed.number, outcome, status, **changes)
        worker_id: UUID = self.owner.id
        return record(self.db, worker_id, [closing], actor=self.owner.name, linger_seconds=60.0)

    def job(self, job_id: int) -> Job:
        found: Job = Job.objects.using(self.alias).get(pk=job_id)
        return found

    def status(self, job_id: int) -> str:
        return self.job(job_id).status
