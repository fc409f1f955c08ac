"""The claim's order, against an oracle that only sorts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.models import Attempt, Job, Payload
from jobs.store.claim import claim
from jobs.store.pick import Lane
from jobs.store.promote import promote
from tests.support.store import Bench

QUEUES = ("default", "mail")


@dataclass(frozen=True)
class Given:
    queue: str
    execution: Execution
    priority: int
    waited: float
    """Seconds from one submission to the next."""
    delay: float


GIVEN = st.builds(
    Given,
    queue=st.sampled_from(QUEUES),
    execution=st.sampled_from([Execution.THREAD, Execution.ASYNC]),
    priority=st.sampled_from([-100, -1, 0, 0, 0, 1, 50, 100]),
    waited=st.sampled_from([0.0, 0.0, 0.5, 3.0]),
    delay=st.sampled_from([0.0, 0.0, 0.0, 0.25, 2.0, 7.5]),
)
ONE_DATABASE_PER_TEST = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fill(bench: Bench, given_jobs: list[Given]) -> list[tuple[Given, int]]:
    """Submit them in a table of their own, then wait until all are due; each with its id."""
    for model in (Attempt, Payload, Job):
        model.objects.using(bench.alias).all().delete()
    submitted = []
    for one in given_jobs:
        receipt = bench.submit(queue=one.queue, execution=one.execution, priority=one.priority, delay_seconds=one.delay)
        submitted.append((one, receipt.job_id))
        bench.turn(one.waited)
    bench.turn(10)
    promote(bench.db)
    return submitted


def in_order(bench: Bench, submitted: list[tuple[Given, int]]) -> list[int]:
    due_at = dict(Job.objects.using(bench.alias).values_list("id", "run_at"))
    return [job_id for _, job_id in sorted(submitted, key=lambda one: (-one[0].priority, due_at[one[1]], one[1]))]


@ONE_DATABASE_PER_TEST
@given(given_jobs=st.lists(GIVEN, max_size=12), free=st.integers(1, 5), ahead=st.integers(0, 3))
def test_each_lane_is_served_in_the_order_of_priority_due_instant_and_id(
    bench: Bench, given_jobs: list[Given], free: int, ahead: int
) -> None:
    submitted = fill(bench, given_jobs)
    claimed: list[Claim] = []
    while taken := bench.claim(free=free, ahead=ahead, queues=QUEUES):
        per_execution = {execution: [one for one in taken if one.execution is execution] for execution in Execution}
        assert all(len(of_one) <= free + ahead for of_one in per_execution.values())
        claimed += taken
    assert sorted(one.job_id for one in claimed) == sorted(job_id for _, job_id in submitted)
    for queue in QUEUES:
        for execution in Execution:
            lane = [(one, job_id) for one, job_id in submitted if (one.queue, one.execution) == (queue, execution)]
            served = [one.job_id for one in claimed if (one.queue, one.execution) == (queue, execution)]
            assert served == in_order(bench, lane)


@ONE_DATABASE_PER_TEST
@given(given_jobs=st.lists(GIVEN, max_size=12))
def test_one_at_a_time_a_queue_is_served_in_order_whatever_the_execution(bench: Bench, given_jobs: list[Given]) -> None:
    submitted = fill(bench, given_jobs)
    for queue in QUEUES:
        lanes = [Lane(queue, execution, 1) for execution in Execution]
        limits = dict.fromkeys(Execution, (1, 0))
        served = []
        while taken := claim(bench.db, bench.owner, lanes, limits=limits, lease_seconds=60.0, only_best=True):
            assert len(taken) == 1
            served.append(taken[0].job_id)
        assert served == in_order(bench, [(one, job_id) for one, job_id in submitted if one.queue == queue])


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_a_claim_of_several_queues_never_exceeds_the_limit_of_the_execution(bench: Bench, limit: int) -> None:
    bench.submit_all([bench.submission(queue=QUEUES[n % 2]) for n in range(30)])
    lanes = [Lane(queue, Execution.THREAD, 8) for queue in QUEUES]
    taken = claim(bench.db, bench.owner, lanes, limits={Execution.THREAD: (limit, 0)}, lease_seconds=60.0)
    assert len(taken) == limit
    # The first lane first: the queue that was served least recently.
    assert [one.queue for one in taken] == (["default"] * 8 + ["mail"] * 8)[:limit]
