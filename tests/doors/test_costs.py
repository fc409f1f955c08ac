"""The statements that an operation costs are those that the design page tells."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

import jobs
from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Job
from jobs.store.claim import claim
from jobs.store.database import Database
from jobs.store.database import database as store_database
from jobs.store.extend import extend
from jobs.store.look import look
from jobs.store.pick import Lane
from jobs.store.promote import expire, promote
from jobs.store.record import record
from tests.support.markdown import DESIGN, table
from tests.support.store import Bench
from tests.support.tasks import add


class Meter:
    """Counts statements on one connection, without an instant of its own: the clock is the database's."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.owner = Bench(alias).owner
        self.counted: dict[str, int] = {}

    @property
    def db(self) -> Database:
        return store_database(self.alias)

    def count(self, operation: str, act: Callable[[], object]) -> None:
        with CaptureQueriesContext(connections[self.alias]) as captured:
            act()
        self.counted[operation] = len(captured)

    def claim(self) -> list[Claim]:
        lanes, limits = [Lane("default", Execution.THREAD, 1000)], {Execution.THREAD: (1000, 0)}
        return claim(self.db, self.owner, lanes, limits=limits, lease_seconds=60.0)

    def record(self, claims: list[Claim], result: str | None) -> None:
        outcome, status = AttemptOutcome.COMPLETED, Status.COMPLETED
        closings = [
            Closing(one.attempt_id, one.job_id, one.task, one.number, outcome, status, result=result) for one in claims
        ]
        assert len(record(self.db, self.owner.id, closings, actor="meter").closed) == len(claims)


def test_every_operation_costs_what_the_design_page_tells(live_database: str) -> None:
    meter = Meter(live_database)
    # Twice: what a connection asks once, such as its version, is no part of it.
    add.enqueue(1)
    _submit(meter)
    _stop(meter)
    _run(meter)
    column = 1 if connections[live_database].vendor == "postgresql" else 2
    told = {row[0]: int(row[column]) for row in table(DESIGN, "## What it costs", "operation")}
    assert meter.counted == told


def _submit(meter: Meter) -> None:
    meter.count("submit", lambda: add.enqueue(1))
    with transaction.atomic(using=meter.alias):
        meter.count("submit inside your transaction", lambda: add.enqueue(1))
    meter.count("submit 1,000 jobs at once", lambda: jobs.enqueue_many([add.bind(n) for n in range(1000)]))
    keyed = add.using(unique_key="held")
    keyed.enqueue(1)
    meter.count("submit, the unique key is held", lambda: keyed.enqueue(1))


def _stop(meter: Meter) -> None:
    waiting = add.using(delay=100).enqueue(1)
    meter.count("cancel a waiting job", lambda: jobs.cancel(waiting))
    meter.count("requeue", lambda: jobs.requeue(waiting))


def _run(meter: Meter) -> None:
    claimed: list[Claim] = []
    waiting = Job.objects.using(meter.alias).count()
    meter.count("look whether there is anything to do", lambda: look(meter.db, ["default"]))
    meter.count("look whether anything is due or expired", lambda: look(meter.db, ()))
    meter.count("promote and expire, after such a look", lambda: (expire(meter.db), promote(meter.db)))
    meter.count("claim, up to 1,000 jobs", lambda: claimed.extend(meter.claim()))
    assert len(claimed) == min(1000, waiting)
    meter.count("cancel a running job", lambda: jobs.cancel(claimed[-1].job_id))
    started = dict.fromkeys((one.attempt_id for one in claimed), None)
    meter.count("renew all leases of a process", lambda: extend(meter.db, meter.owner.id, started, lease_seconds=60.0))
    meter.count("record a group of outcomes", lambda: meter.record(claimed[:500], None))
    meter.count("record a group, some with results", lambda: meter.record(claimed[500:], "1"))
