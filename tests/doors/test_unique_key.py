"""One active job per unique key: who holds it, for how long, and who takes it again."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

import jobs
from jobs import InvalidOption, RetryPolicy, UniqueKeyHeld, job
from jobs.domain.registry import registry
from jobs.models import Job
from jobs.testing import run_jobs
from tests.support import tasks

once = tasks.add.using(unique_key="k")


def slot(row: Job) -> str | None:
    return jobs.get(row).unique_slot


def test_the_second_submit_returns_the_first_job_and_says_so(database: str) -> None:
    first, second = once.enqueue(1), once.enqueue(2)
    assert (first.created, second.created) == (True, False)
    assert second.pk == first.pk
    assert second.arguments == {"args": [1], "kwargs": {}}
    assert Job.objects.using(database).count() == 1


def test_the_key_is_one_over_all_tasks_and_queues(database: str) -> None:
    first = once.enqueue(1)
    other = tasks.misbehave.using(unique_key="k", queue="mail").enqueue("ok")
    assert (other.pk, other.created, other.task) == (first.pk, False, "tests.support.tasks.add")


def test_jobs_with_other_keys_or_none_are_not_held_up(database: str) -> None:
    rows = [once.enqueue(1), tasks.add.using(unique_key="K").enqueue(1), tasks.add.enqueue(1), tasks.add.enqueue(1)]
    assert all(row.created for row in rows)


def test_a_batch_may_hold_one_key_several_times(database: str) -> None:
    held = tasks.add.using(unique_key="held").enqueue(0)
    calls = [
        once.bind(1),
        tasks.add.bind(2),
        once.bind(3),
        tasks.add.using(unique_key="held").bind(4),
        tasks.add.using(unique_key="other").bind(5),
        tasks.add.bind(6),
    ]
    rows = jobs.enqueue_many(calls)
    assert [row.created for row in rows] == [True, True, False, False, True, True]
    assert (rows[2].pk, rows[3].pk) == (rows[0].pk, held.pk)
    assert [row.arguments["args"] for row in rows] == [[1], [2], [1], [0], [5], [6]]


@pytest.mark.parametrize("how", ["ok", "non_retryable", "cancel_job"])
def test_by_default_the_key_is_held_until_the_job_has_ended(database: str, how: str) -> None:
    row = tasks.misbehave.using(unique_key="k").enqueue(how)
    assert slot(row) == "k"
    run_jobs()
    assert jobs.get(row).is_finished
    assert slot(row) is None
    assert once.enqueue(1).created is True


def test_a_cancelled_job_gives_its_key_back(database: str) -> None:
    row = once.enqueue(1)
    jobs.cancel(row)
    assert slot(row) is None
    assert once.enqueue(1).created is True


def test_while_a_job_runs_its_key_is_held(database: str) -> None:
    seen: list[bool] = []
    body = job(name="tests.resubmit")(lambda: seen.append(once.enqueue(1).created))
    try:
        body.using(unique_key="k").enqueue()
        body.using(unique_key="k2", unique_scope="until_started").enqueue()
        run_jobs()
    finally:
        registry.remove("tests.resubmit")
    assert seen == [False, True]


def test_until_started_gives_the_key_back_to_a_job_that_follows(database: str) -> None:
    seen: list[bool] = []
    until_started = {"unique_key": "k", "unique_scope": "until_started"}
    body = job(name="tests.follow")(lambda: seen.append(tasks.add.using(**until_started).enqueue(1).created))
    try:
        body.using(**until_started).enqueue()
        assert body.using(**until_started).enqueue().created is False
        run_jobs(max_jobs=1)
    finally:
        registry.remove("tests.follow")
    assert seen == [True]


def test_a_retry_goes_on_without_the_key_of_until_started(database: str) -> None:
    row = tasks.fail_twice.using(
        unique_key="k", unique_scope="until_started", retry=RetryPolicy(max_retries=3, base_delay=60, jitter=False)
    ).enqueue()
    run_jobs()
    assert jobs.get(row).status == "retry_wait"
    other = once.enqueue(1)
    assert other.created is True
    run_jobs(now=datetime.now(timezone.utc) + timedelta(minutes=10))
    run_jobs(now=datetime.now(timezone.utc) + timedelta(minutes=20))
    assert [jobs.get(row).status, slot(row)] == ["completed", None]


def test_a_retry_keeps_the_key_of_until_finished(database: str) -> None:
    row = tasks.fail_twice.using(
        unique_key="k", retry=RetryPolicy(max_retries=3, base_delay=60, jitter=False)
    ).enqueue()
    run_jobs()
    assert [jobs.get(row).status, slot(row)] == ["retry_wait", "k"]
    assert once.enqueue(1).pk == row.pk


def test_a_requeue_takes_the_key_again(database: str) -> None:
    row = once.enqueue(1)
    jobs.cancel(row)
    assert jobs.requeue(row) is True
    assert slot(row) == "k"
    assert once.enqueue(2).pk == row.pk


def test_a_requeue_is_refused_while_another_job_holds_the_key(database: str) -> None:
    row = once.enqueue(1)
    jobs.cancel(row)
    holder = once.enqueue(2)
    with pytest.raises(UniqueKeyHeld, match=rf"job {row.pk} stays as it is: .* holds its unique key 'k'"):
        jobs.requeue(row)
    assert [jobs.get(row).status, slot(row), jobs.get(holder).status] == ["cancelled", None, "pending"]
    jobs.cancel(holder)
    assert jobs.requeue(row) is True


def test_a_scope_without_a_key_is_refused(database: str) -> None:
    with pytest.raises(InvalidOption, match="unique_scope needs a unique_key"):
        tasks.add.using(unique_scope="until_started")
