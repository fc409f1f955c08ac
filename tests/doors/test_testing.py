"""`run_jobs` inside a plain TestCase: the real claim and record path, without a thread, a sleep or a commit."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction
from django.test import TestCase
from django.utils import timezone
from pytest_django import Settings

import jobs
from jobs import RetryPolicy, Status
from jobs.domain.registry import registry
from jobs.models import Job
from jobs.testing import run_jobs
from tests.support import crowd, messy, steered, talking, tasks
from tests.support.models import Effect
from tests.support.story import Story, attempts_of, failure_of, story_of

EVERY = pytest.mark.parametrize("model", steered.MODELS, ids=lambda model: model.execution.value)


class InAPlainTestCase(TestCase):
    """As in a project's own tests."""

    def test_every_execution_runs_right_here(self) -> None:
        rows = [tasks.add.enqueue(1, 2), tasks.aadd.enqueue(3, 4), tasks.padd.enqueue(5, 6)]
        ran = run_jobs()
        assert ran.attempts == [(row.pk, Status.COMPLETED) for row in rows]
        assert [jobs.get(row).result for row in rows] == [3, 7, 11]
        assert [one.name for one in threading.enumerate() if one.name.startswith("jobs-")] == []
        assert connections["default"].in_atomic_block

    def test_it_follows_what_jobs_enqueue(self) -> None:
        tasks.fan_out.enqueue(2)
        assert len(run_jobs()) == 1 + 3 + 9
        assert len(run_jobs()) == 0

    def test_what_the_test_did_before_is_seen_by_its_jobs_and_rolled_back_with_it(self) -> None:
        Effect.objects.create(label="before")
        messy.write.enqueue("default")
        run_jobs()
        assert sorted(Effect.objects.values_list("label", flat=True)) == ["before", "written"]

    def test_nothing_is_left_of_the_test_before(self) -> None:
        assert (Job.objects.count(), Effect.objects.count()) == (0, 0)


@EVERY
def test_a_job_ends_as_it_would_in_a_worker(database: str, model: steered.Model) -> None:
    retries = RetryPolicy(max_retries=2, base_delay=0)
    rows = {
        how: model.steer.using(retry=retries).enqueue(how)
        for how in ("complete", "fail", "fail_twice", "cancel_itself", "give_up")
    }
    ran = run_jobs()
    assert {how: story_of(row) for how, row in rows.items()} == {
        "complete": Story("completed", ["completed"], [], 1),
        "fail": Story("failed", ["failed"] * 3, ["ValueError"] * 3),
        "fail_twice": Story("completed", ["failed", "failed", "completed"], ["ValueError"] * 2, 3),
        "cancel_itself": Story("cancelled", ["cancelled"]),
        "give_up": Story("failed", ["failed"], ["NonRetryableError"]),
    }
    assert (len(ran), ran.count("completed"), ran.count(Status.RETRY_WAIT)) == (9, 2, 4)


def test_the_clock_is_turned_by_the_argument(database: str) -> None:
    soon = tasks.add.using(delay=60).enqueue(1)
    later = tasks.add.using(delay=timedelta(days=30)).enqueue(2)
    asked_at = time.monotonic()
    assert len(run_jobs()) == 0
    assert run_jobs(now=timezone.now() + timedelta(seconds=61)).attempts == [(soon.pk, Status.COMPLETED)]
    assert run_jobs(now=timezone.now() + timedelta(days=31)).attempts == [(later.pk, Status.COMPLETED)]
    assert time.monotonic() - asked_at < 10


def test_retries_wait_for_the_turned_clock(database: str) -> None:
    policy = RetryPolicy(max_retries=2, base_delay=60, jitter=False)
    row = steered.steer.using(retry=policy).enqueue("fail")
    start = timezone.now()
    assert run_jobs(now=start).attempts == [(row.pk, Status.RETRY_WAIT)]
    assert jobs.get(row).run_at == start + timedelta(seconds=60)
    assert len(run_jobs(now=start + timedelta(seconds=59))) == 0
    assert len(run_jobs(now=start + timedelta(seconds=61))) == 1
    assert len(run_jobs(now=start + timedelta(seconds=180))) == 0
    assert run_jobs(now=start + timedelta(seconds=182)).attempts == [(row.pk, Status.FAILED)]


def test_what_is_recorded_carries_the_turned_instant(database: str) -> None:
    row = tasks.add.using(delay=timedelta(days=2)).enqueue(1)
    then = timezone.now() + timedelta(days=3)
    run_jobs(now=then)
    (attempt,) = attempts_of(jobs.get(row))
    assert attempt.claimed_at == attempt.started_at == attempt.ended_at == jobs.get(row).ended_at == then


def test_a_snooze_waits_for_the_turned_clock(database: str) -> None:
    row = tasks.misbehave.enqueue("snooze")
    start = timezone.now()
    assert run_jobs(now=start).attempts == [(row.pk, Status.SCHEDULED)]
    assert len(run_jobs(now=start + timedelta(seconds=3599))) == 0
    assert len(run_jobs(now=start + timedelta(seconds=3601))) == 1


def test_a_job_expires_before_its_first_start_only(database: str) -> None:
    start = timezone.now()
    policy = RetryPolicy(max_retries=1, base_delay=600, jitter=False)
    late = steered.steer.using(expires_at=start + timedelta(seconds=300)).enqueue("complete")
    started = steered.steer.using(expires_at=start + timedelta(seconds=300), retry=policy, priority=50).enqueue("fail")
    assert len(run_jobs(now=start, max_jobs=1)) == 1
    assert len(run_jobs(now=start + timedelta(seconds=601))) == 1
    assert (jobs.get(late).status, jobs.get(late).cause) == ("cancelled", "expired")
    assert story_of(started) == Story("failed", ["failed"] * 2, ["ValueError"] * 2)


def test_max_jobs_bounds_the_attempts(database: str) -> None:
    rows = [tasks.add.enqueue(number) for number in range(5)]
    assert [job_id for job_id, _ in run_jobs(max_jobs=2).attempts] == [row.pk for row in rows[:2]]
    assert len(run_jobs(max_jobs=0)) == 0
    assert len(run_jobs()) == 3


def test_the_order_is_priority_then_due_instant_then_id_over_all_executions(database: str) -> None:
    start = timezone.now() - timedelta(hours=1)
    low = tasks.add.using(priority=-50).enqueue(1)
    young = tasks.padd.using(run_at=start + timedelta(minutes=2)).enqueue(1)
    old = tasks.aadd.using(run_at=start + timedelta(minutes=1)).enqueue(1)
    high = tasks.aadd.using(priority=50).enqueue(1)
    plain = [tasks.add.enqueue(1), tasks.padd.enqueue(1), tasks.aadd.enqueue(1)]
    order = [job_id for job_id, _ in run_jobs().attempts]
    # A due instant that had passed when it was submitted counts from the submission.
    assert order == [row.pk for row in (high, young, old, *plain, low)]


def test_only_the_named_queues_are_served_and_queues_take_turns(database: str, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "QUEUES": ["default", "mail"]}
    mails = [tasks.add.using(queue="mail").enqueue(number) for number in range(3)]
    others = [tasks.add.enqueue(number) for number in range(3)]
    assert [job_id for job_id, _ in run_jobs(queues=["mail"], max_jobs=1).attempts] == [mails[0].pk]
    turns = [jobs.get(job_id).queue for job_id, _ in run_jobs().attempts]
    assert turns == ["default", "mail", "default", "mail", "default"]
    assert {jobs.get(row).status for row in others} == {"completed"}


@EVERY
def test_whatever_a_body_raises_stays_inside(database: str, model: steered.Model) -> None:
    task: Any = {"thread": tasks.misbehave, "async": tasks.amisbehave, "process": tasks.pmisbehave}[model.execution]
    rows = [task.using(retry=0).enqueue(how) for how in ("exit", "interrupt", "base", "odd", "mute", "nan_result")]
    after = tasks.add.enqueue(1)
    run_jobs()
    assert {jobs.get(row).status for row in rows} == {"failed"}
    assert jobs.get(after).status == "completed"


@pytest.mark.parametrize("task", [messy.break_transaction, messy.abreak_transaction, messy.break_connection])
def test_a_body_that_breaks_its_transaction_leaves_the_tests_own_usable(database: str, task: Any) -> None:
    Effect.objects.using(database).create(label="of the test")
    bad = task.enqueue(database)
    good = messy.write.enqueue(database)
    run_jobs()
    assert story_of(bad) == Story("failed", ["failed"], ["IntegrityError"])
    assert jobs.get(good).status == "completed"
    assert set(Effect.objects.using(database).values_list("label", flat=True)) >= {"of the test", "written"}


@pytest.mark.parametrize("task", [messy.leave_transaction_open, messy.aleave_transaction_open])
def test_a_body_that_leaves_a_transaction_open_fails_saying_so(database: str, task: Any) -> None:
    bad, good = task.enqueue(database), messy.write.enqueue(database)
    run_jobs()
    assert story_of(bad) == Story("failed", ["failed"], ["TransactionLeftOpen"])
    assert jobs.get(good).status == "completed"
    with transaction.atomic(using=database):
        assert list(Effect.objects.using(database).values_list("label", flat=True)) == ["written"]


def test_a_failed_body_keeps_what_it_had_written_as_it_would_in_a_worker(database: str) -> None:
    row = messy.write_then_fail.enqueue(database)
    run_jobs()
    assert jobs.get(row).status == "failed"
    assert Effect.objects.using(database).filter(label="kept").exists()


def test_context_progress_and_log_are_kept(database: str, tmp_path: Path) -> None:
    steered.open_door(tmp_path)
    talk, measure = talking.talk.enqueue(), talking.measure.enqueue(str(tmp_path))
    run_jobs()
    (attempt,) = attempts_of(jobs.get(measure))
    assert (attempt.progress_done, attempt.progress_message) == (1000, "row 1000")
    first, second = attempts_of(jobs.get(talk))
    assert jobs.get(talk).result["fence"] == second.pk
    assert "stock is low: 3" in [message for *_, message in first.captured_log.lines]


def test_a_vanished_task_fails_as_task_not_found(database: str) -> None:
    row = crowd.quick.enqueue()
    known = registry.get(crowd.quick.name)
    registry.remove(known.name)
    try:
        run_jobs()
    finally:
        registry.add(known)
    assert story_of(row) == Story("failed", ["failed"], ["TaskNotFound"])
    assert "task not found" in failure_of(jobs.get(row)).message


def test_a_job_may_cancel_and_requeue_others_and_itself(database: str) -> None:
    for seed in range(10):
        crowd.nest.enqueue(seed)
        crowd.anest.enqueue(seed)
        crowd.pnest.enqueue(seed)
    run_jobs()
    left = Job.objects.using(database).exclude(status__in=["completed", "cancelled", "scheduled"])
    assert not left.exists()


def test_an_at_most_once_job_runs_once(database: str) -> None:
    row = steered.steer.using(at_most_once=True, retry=RetryPolicy(max_retries=2, base_delay=0)).enqueue("fail_twice")
    run_jobs()
    assert story_of(row).status == "completed"


def test_it_runs_inside_a_block_of_the_callers_that_is_rolled_back(live_database: str) -> None:
    row = messy.write.enqueue(live_database)
    with transaction.atomic(using=live_database):
        run_jobs()
        assert jobs.get(row).status == "completed"
        transaction.set_rollback(True, using=live_database)
    assert jobs.get(row).status == "pending"
    assert not Effect.objects.using(live_database).exists()


def test_it_runs_without_a_block_too(live_database: str) -> None:
    rows = [messy.break_transaction.enqueue(live_database), messy.write.enqueue(live_database)]
    run_jobs()
    assert [jobs.get(row).status for row in rows] == ["failed", "completed"]
