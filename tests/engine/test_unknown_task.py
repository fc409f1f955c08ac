"""Jobs whose task this worker does not know: handed back for others, and failed visibly in the end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

import jobs
from jobs import Execution
from jobs.domain.options import TaskOptions
from jobs.domain.registry import Registry, registry
from jobs.domain.task import TaskDefinition, define
from jobs.engine import scheduler as engine
from jobs.models import Job
from jobs.scheduler import engine_options
from jobs.submission import Submitter
from tests.support import tasks
from tests.support.engine import running
from tests.support.story import Story, failure_of, story_of
from tests.support.waiting import wait_until

NAME = "somewhere.else"


def answer() -> int:
    return 42


async def aanswer() -> int:
    return 42


EVERY = pytest.mark.parametrize(
    "foreign",
    [(answer, Execution.THREAD), (aanswer, Execution.ASYNC), (answer, Execution.PROCESS)],
    indirect=True,
    ids=["thread", "async", "process"],
)
ONE = pytest.mark.parametrize("foreign", [(answer, Execution.THREAD)], indirect=True, ids=["thread"])


@pytest.fixture
def foreign(request: pytest.FixtureRequest, live_database: str) -> Iterator[tuple[TaskDefinition, Job]]:
    """A task that was known when its job was submitted, and now is not."""
    function, execution = request.param
    options = TaskOptions(execution=execution, execution_chosen=True)
    definition = registry.add(define(function, name=NAME, options=options))
    row = Submitter[Any](definition).enqueue()
    registry.remove(NAME)
    yield definition, row
    registry.remove(NAME)


def handed_back(row: Job) -> bool:
    job = jobs.get(row)
    return job.unknown_since is not None and job.status == "pending"


@EVERY
def test_a_job_of_an_unknown_task_is_handed_back_and_its_neighbours_run(
    live_database: str, foreign: tuple[TaskDefinition, Job]
) -> None:
    _, row = foreign
    neighbour = tasks.add.enqueue(1, 2)
    with running(processes=1, unknown_task_pause=600.0):
        wait_until(lambda: handed_back(row), timeout=15)
        wait_until(lambda: jobs.get(neighbour).status == "completed", timeout=15)
        job = jobs.get(row)
        since = job.unknown_since
        assert (job.attempts, job.failures, job.losses, job.interruptions) == (0, 0, 0, 0)
    assert story_of(row) == Story("pending")
    assert jobs.get(row).unknown_since == since
    assert jobs.explain(row).reason == "unknown_task"


@EVERY
def test_a_task_that_nobody_knows_for_long_fails_as_task_not_found(
    live_database: str, foreign: tuple[TaskDefinition, Job]
) -> None:
    _, row = foreign
    with running(processes=1, task_not_found_after=0.2, unknown_task_pause=0.1, poll=0.1) as scheduler:
        assert scheduler.join(20)
    assert story_of(row) == Story("failed", ["failed"], ["TaskNotFound"])
    assert "task not found: no worker knew somewhere.else" in failure_of(jobs.get(row)).message
    assert jobs.get(row).cause == "task not found"


@ONE
def test_a_worker_that_knows_the_task_runs_it_at_once(live_database: str, foreign: tuple[TaskDefinition, Job]) -> None:
    definition, row = foreign
    knowing = Registry()
    knowing.add(definition)
    options = engine_options(poll=600.0, threads=1, async_slots=0, processes=0)
    with running(unknown_task_pause=600.0, poll=600.0):
        wait_until(lambda: handed_back(row), timeout=15)
        other = engine.Scheduler(options, knowing)
        other.start()
        try:
            wait_until(lambda: jobs.get(row).status == "completed", timeout=15)
        finally:
            other.stop(cancel_running=True)
    assert story_of(row) == Story("completed", ["completed"], [], 42)
    assert jobs.get(row).unknown_since is None


@ONE
def test_a_cancelled_job_of_an_unknown_task_ends(live_database: str, foreign: tuple[TaskDefinition, Job]) -> None:
    _, row = foreign
    with running(unknown_task_pause=600.0) as scheduler:
        wait_until(lambda: handed_back(row), timeout=15)
        assert jobs.cancel(row)
        assert scheduler.join(15)
    assert story_of(row) == Story("cancelled")


def test_a_backlog_of_a_vanished_task_fails_without_a_pause_after_each_round(live_database: str) -> None:
    definition = registry.add(define(answer, name=NAME, options=TaskOptions()))
    rows = [Submitter[Any](definition).enqueue() for _ in range(12)]
    registry.remove(NAME)
    long_ago = timezone.now() - timedelta(hours=1)
    with connections[live_database].cursor() as cursor:  # the guard lets no model write it
        cursor.execute("UPDATE jobs_job SET unknown_since = %s", [long_ago])
    with running(threads=2, async_slots=0, task_not_found_after=60.0, unknown_task_pause=600.0):
        wait_until(lambda: {jobs.get(row).status for row in rows} == {"failed"}, timeout=15)
