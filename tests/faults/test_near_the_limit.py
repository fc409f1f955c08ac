"""Jobs that end about when their time is up: each ends once, and nothing of one reaches the next on its slot."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import jobs
from jobs import RetryPolicy
from jobs.models import Attempt, Failure, Job
from jobs.store.database import database
from jobs.store.verify import verify
from tests.support import limits, tasks
from tests.support.engine import running

LIMIT = 0.1
SECONDS_PER_JOB = 1.0
"""At most: a child process that was stopped is replaced by a new one."""
# How far from the limit a body ends: a timer, a thread switch and a signal each take less than this.
SPREAD = 0.01
MODELS = {
    "thread": (limits.last, tasks.add, {"threads": 8}),
    "async": (limits.alast, tasks.aadd, {"async_slots": 50}),
    "process": (limits.plast, tasks.padd, {"processes": 2}),
}


def end_near_the_limit(alias: str, model: str, count: int, rng: random.Random) -> Counter[str]:
    task, probe, slots = MODELS[model]
    once_more = RetryPolicy(max_retries=1, base_delay=0, jitter=False)
    bound: list[Any] = []
    for _ in range(count):
        bound.append(task.using(timeout=LIMIT, retry=once_more).bind(LIMIT + rng.uniform(-SPREAD, SPREAD)))
        bound.append(probe.bind(1, 2))
    limits.overlaps.clear()
    with running(cancel_grace=1.0, **slots) as scheduler:
        rows = jobs.enqueue_many(bound)
        assert scheduler.join(30 + count * SECONDS_PER_JOB), Counter(job.status for job in Job.objects.using(alias))
        assert scheduler.in_flight.in_flight() == 0
    stored = {job.pk: job for job in Job.objects.using(alias)}
    near, probes = [stored[row.pk] for row in rows[::2]], [stored[row.pk] for row in rows[1::2]]
    assert {(job.status, job.attempts, job.failures) for job in probes} == {("completed", 1, 0)}
    ends = Counter(job.status for job in near)
    assert set(ends) <= {"completed", "timed_out"}
    # Only ever its own time: nothing was raised into a body that was not over its limit.
    classes = Failure.objects.using(alias).values_list("exception_class", flat=True).distinct()
    assert set(classes) <= {"jobs.TimedOut"}
    assert limits.overlaps == []
    assert not Attempt.objects.using(alias).filter(lingering_until__isnull=False).exists()
    assert list(verify(database(alias), overdue_seconds=0.0)) == []
    return ends


@pytest.mark.parametrize(("model", "count"), [("thread", 120), ("async", 200), ("process", 12)])
def test_jobs_that_end_near_their_limit_leave_nothing_to_the_next(live_database: str, model: str, count: int) -> None:
    end_near_the_limit(live_database, model, count, random.Random(3))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "count"), [("thread", 2000), ("async", 2000), ("process", 300)])
def test_two_thousand_jobs_that_end_near_their_limit_do_not(live_database: str, model: str, count: int) -> None:
    ends = end_near_the_limit(live_database, model, count, random.Random())
    assert len(ends) == 2, f"all on one side of the limit: {ends}"
