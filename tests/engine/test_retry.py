"""Retries through the whole scheduler: numbers as submitted, classes and callables from the code."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs import RetryPolicy
from jobs.conf import jobs_settings
from jobs.domain.registry import registry
from jobs.domain.task import TaskDefinition
from jobs.models import Job
from tests.support import retrying, steered
from tests.support.engine import running
from tests.support.steered import Model
from tests.support.story import Story, attempts_of, failure_of, story_of
from tests.support.waiting import wait_until


def run_all(**overrides: Any) -> None:
    processes = Job.objects.using(jobs_settings().DATABASE).filter(execution="process").exists()
    with running(processes=int(processes), **overrides) as scheduler:
        assert scheduler.join(30)


def test_the_row_keeps_the_numbers_that_were_submitted(live_database: str, model: Model) -> None:
    patient = model.steer.using(retry=RetryPolicy(max_retries=2, base_delay=0)).enqueue("fail")
    hasty = model.steer.enqueue("fail")
    run_all()
    assert story_of(patient).outcomes == ["failed"] * 3
    assert story_of(hasty).outcomes == ["failed"]
    assert jobs.get(patient).payload.retry_base_seconds == 0


def test_a_deployment_that_changes_the_numbers_leaves_submitted_jobs_alone(live_database: str) -> None:
    rows = [retrying.three_times.enqueue(), retrying.three_times.enqueue()]
    known = registry.get(retrying.three_times.name)
    changed = TaskDefinition(known.name, known.function, retrying.NO_RETRY_OPTIONS, known.parameters, known.place)
    registry.add(changed)
    try:
        run_all()
    finally:
        registry.add(known)
    assert [story_of(row).outcomes for row in rows] == [["failed"] * 3] * 2


@pytest.mark.parametrize("task", [retrying.picky, retrying.apicky, retrying.ppicky], ids=["thread", "async", "process"])
def test_exception_classes_come_from_the_code(live_database: str, task: Any) -> None:
    rows = {name: task.enqueue(name) for name in ("KeyError", "IndexError", "ZeroDivisionError", "TimeoutError")}
    run_all()
    assert {name: len(story_of(row).outcomes) for name, row in rows.items()} == {
        "KeyError": 3,
        "IndexError": 1,  # given up on, although it is a LookupError
        "ZeroDivisionError": 1,  # not among those to retry
        "TimeoutError": 1,
    }


def test_a_timeout_is_retried_like_an_exception(live_database: str, model: Model, tmp_path: Path) -> None:
    policy = RetryPolicy(max_retries=1, base_delay=0)
    row = model.steer.using(timeout=0.2, retry=policy).enqueue("stay", str(tmp_path))
    run_all()
    assert story_of(row) == Story("timed_out", ["timed_out"] * 2, ["TimedOut"] * 2)
    assert jobs.get(row).failures == 2
    assert jobs.get(row).cause.startswith("timed out")


@pytest.mark.parametrize(
    "task", [retrying.broken, retrying.abroken, retrying.pbroken], ids=["thread", "async", "process"]
)
def test_a_policy_that_raises_still_records_the_failure(live_database: str, task: Any) -> None:
    row = task.enqueue()
    late = task.using(timeout=0.2).enqueue(stay=True)
    run_all()
    assert story_of(row) == Story("failed", ["failed"], ["ValueError"])
    assert "The retry policy itself failed" in failure_of(jobs.get(row)).traceback
    assert story_of(late) == Story("timed_out", ["timed_out"], ["TimedOut"])


def test_a_callable_of_the_task_decides_when_and_whether(live_database: str) -> None:
    row = retrying.own_way.enqueue()
    run_all()
    assert story_of(row) == Story("failed", ["failed"] * 3, ["ValueError"] * 3)
    first, second, third = attempts_of(jobs.get(row))
    assert first.ended_at and second.ended_at
    assert second.claimed_at - first.ended_at < timedelta(seconds=5)
    assert third.claimed_at - second.ended_at >= timedelta(seconds=0.3)


def test_the_delay_before_a_retry_is_kept(live_database: str) -> None:
    policy = RetryPolicy(max_retries=2, base_delay=0.2, jitter=False)
    row = steered.steer.using(retry=policy).enqueue("fail")
    run_all(poll=30.0)
    first, second, third = attempts_of(jobs.get(row))
    assert first.ended_at and second.ended_at
    # On time, neither early nor at the next poll.
    assert timedelta(seconds=0.2) <= second.claimed_at - first.ended_at < timedelta(seconds=5)
    assert timedelta(seconds=0.4) <= third.claimed_at - second.ended_at < timedelta(seconds=5)


def test_a_requeued_job_has_its_retries_again_and_counts_its_attempts_on(live_database: str) -> None:
    row = steered.steer.using(retry=RetryPolicy(max_retries=1, base_delay=0)).enqueue("fail")
    run_all()
    assert jobs.requeue(row)
    run_all()
    job = jobs.get(row)
    assert [attempt.number for attempt in attempts_of(job)] == [1, 2, 3, 4]
    assert (job.status, job.failures) == ("failed", 2)


@pytest.fixture
def thoughtful_policy() -> Iterator[None]:
    retrying.thinking.clear()
    retrying.thought.clear()
    yield
    retrying.thought.set()


@pytest.mark.usefixtures("thoughtful_policy")
@pytest.mark.parametrize("task", [retrying.thoughtful, retrying.athoughtful], ids=["thread", "async"])
def test_a_policy_that_takes_its_time_holds_up_nobody(live_database: str, task: Any) -> None:
    with running() as scheduler:
        slow = task.using(timeout=0.1).enqueue()
        assert retrying.thinking.wait(20)
        others = [own.using(timeout=0.1).enqueue() for own in (retrying.sleepy, retrying.asleepy)]
        wait_until(lambda: all(jobs.get(row).status == "timed_out" for row in others), timeout=20)
        assert jobs.get(slow).status == "running"
        retrying.thought.set()
        assert scheduler.join(30)
    assert story_of(slow).outcomes == ["timed_out"] * 2


@pytest.mark.usefixtures("thoughtful_policy")
def test_a_job_whose_policy_does_not_answer_is_handed_back_at_a_stop(live_database: str) -> None:
    with running(grace=0.2):
        row = retrying.athoughtful.using(timeout=0.1).enqueue()
        assert retrying.thinking.wait(20)
    assert story_of(row) == Story("pending", ["interrupted"], [])


@pytest.mark.usefixtures("thoughtful_policy")
def test_a_policy_that_never_answers_means_no_retry(live_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.engine.in_flight.PATIENCE", 0.3)
    row = retrying.athoughtful.using(timeout=0.1).enqueue()
    run_all()
    assert story_of(row).outcomes == ["timed_out"]
