"""explain: where a job stands, in one sentence and one stable word."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

import jobs
from jobs import RetryPolicy
from jobs.domain.claim import Claim
from jobs.domain.closing import Closing
from jobs.domain.execution import Execution
from jobs.domain.failure import system_failure
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Job
from jobs.store.claim import Owner, claim
from jobs.store.database import database as store_database
from jobs.store.explain import COUNTED_AHEAD
from jobs.store.pick import Lane
from jobs.store.record import record
from jobs.store.release import release
from jobs.store.submit import Submission, submit
from jobs.store.workers import WorkerCard, beat
from jobs.testing import run_jobs
from tests.support import tasks

INSTANT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
ALL = dict.fromkeys(Execution, 1)


def live_worker(database: str, *, role: str = "both", silent: float = 0.0, **changes: Any) -> None:
    card: dict[str, Any] = {"queues": ("default",), "slots": ALL, **changes}
    if role == "scheduler":
        card = {"queues": (), "slots": {}}
    worker = WorkerCard(**{"id": uuid4(), "name": "w1", "host": "h", "pid": 1, "role": role, "version": "", **card})
    beat(store_database(database), worker)
    if silent:
        db = store_database(database)
        db.execute(
            f"UPDATE jobs_worker SET seen_at = {db.later('%(age)s')} WHERE id = %(id)s", age=-silent, id=worker.id
        )


def claimed(database: str, *, lease: float = 60.0, worker_id: UUID | None = None) -> tuple[UUID, Claim]:
    owner = Owner(worker_id or uuid4(), "w1")
    lanes = [Lane("default", execution, 1) for execution in Execution]
    (one,) = claim(store_database(database), owner, lanes, limits=dict.fromkeys(Execution, (1, 0)), lease_seconds=lease)
    return owner.id, one


def says(row: Job, reason: str, sentence: str, command: str = "") -> None:
    explanation = jobs.explain(row)
    assert explanation.reason == reason, explanation
    assert_matches(explanation.sentence, sentence)
    assert explanation.command == command
    assert explanation.job_id == row.pk
    assert explanation.status == jobs.get(row).status
    assert str(explanation) == f"{explanation.sentence} Run: {command}" if command else explanation.sentence


def assert_matches(text: str, pattern: str) -> None:
    assert re.fullmatch(pattern, text), text


def test_a_completed_job_says_when_and_after_how_many_attempts(database: str) -> None:
    row = tasks.add.enqueue(1)
    run_jobs()
    says(row, "finished", f"Completed at {INSTANT} after 1 attempt\\.")


def test_a_failed_job_counts_its_attempts(database: str) -> None:
    row = tasks.misbehave.enqueue("value_error")
    run_jobs()
    says(row, "finished", f"Failed at {INSTANT} after 3 attempts: ValueError: boom \\(2 retries used up\\)\\.")


def test_a_job_that_failed_before_its_retries_were_used_up_says_how_many_were(database: str) -> None:
    row = tasks.misbehave.using(retry=RetryPolicy(max_retries=5, base_delay=0)).enqueue("non_retryable")
    run_jobs()
    says(row, "finished", f"Failed at {INSTANT} after 1 attempt: .*NonRetryableError: .* \\(0 of 5 retries used\\)\\.")


def test_a_job_that_timed_out_says_its_limit_once(database: str) -> None:
    row = tasks.add.enqueue(1)
    worker_id, one = claimed(database)
    failure = system_failure("jobs.TimedOut", "tests.support.tasks.add ran longer than its timeout of 3 s")
    closing = Closing(
        one.attempt_id, one.job_id, one.task, 1, AttemptOutcome.TIMED_OUT, Status.TIMED_OUT, failure=failure, failures=1
    )
    record(store_database(database), worker_id, [closing], actor="w1")
    says(row, "finished", f"Timed out at {INSTANT} after 1 attempt: .*add ran longer than its timeout of 3 s\\.")


def test_a_cancelled_job_says_who_cancelled_it_and_why(database: str) -> None:
    row = tasks.add.enqueue(1)
    jobs.cancel(row, "wrong file", actor="anna")
    says(row, "finished", f"Cancelled at {INSTANT} without having started: cancelled by anna: wrong file\\.")


def test_a_job_that_succeeded_before_it_noticed_a_cancel_does_not_blame_it(database: str) -> None:
    row = tasks.add.enqueue(1)
    worker_id, one = claimed(database)
    jobs.cancel(row, "too slow")
    closing = Closing(one.attempt_id, one.job_id, one.task, 1, AttemptOutcome.COMPLETED, Status.COMPLETED)
    record(store_database(database), worker_id, [closing], actor="w1")
    says(row, "finished", f"Completed at {INSTANT} after 1 attempt\\.")


def test_a_running_job_says_since_when_and_where(database: str) -> None:
    row = tasks.add.enqueue(1)
    claimed(database)
    says(row, "running", f"Running since {INSTANT} on w1\\.")


def test_a_running_job_that_was_asked_to_stop_says_so(database: str) -> None:
    row = tasks.add.enqueue(1)
    claimed(database)
    jobs.cancel(row)
    says(row, "stopping", f"Running since {INSTANT} on w1; asked to stop at {INSTANT}\\.")


def test_a_running_job_whose_worker_fell_silent_says_since_when_and_when_it_is_taken_back(database: str) -> None:
    row = tasks.add.enqueue(1)
    live_worker(database)
    silent = uuid4()
    live_worker(database, id=silent, name="w1", silent=29)
    claimed(database, worker_id=silent)
    assert jobs.explain(row).sentence.endswith("on w1.")
    live_worker(database, id=silent, name="w1", silent=31)
    says(
        row,
        "running",
        f"Running since {INSTANT} on w1, which has not been heard from since {INSTANT}; "
        f"if it stays silent, the job is taken back by {INSTANT}\\.",
    )
    jobs.cancel(row)
    assert "; asked to stop at" in jobs.explain(row).sentence


def test_a_running_job_whose_lease_is_over_says_what_happens_next(database: str) -> None:
    row = tasks.add.enqueue(1)
    live_worker(database, role="worker")
    claimed(database, lease=-5)
    over = f"Running since .* on w1; its lease ended at {INSTANT}"
    says(
        row,
        "running",
        f"{over}; no live scheduler is there to take the job back\\.",
        "python manage.py runscheduler",
    )
    live_worker(database)
    says(row, "running", f"{over}; if it stays silent, a scheduler takes the job back any moment\\.")


def test_a_job_for_later_says_when(database: str) -> None:
    live_worker(database)
    row = tasks.add.using(delay=3600).enqueue(1)
    says(row, "waits_for_time", f"Due at {INSTANT}\\.")


def test_a_job_between_two_attempts_says_how_often_it_failed_and_when_it_goes_on(database: str) -> None:
    live_worker(database)
    row = tasks.misbehave.using(retry=RetryPolicy(max_retries=5, base_delay=60, jitter=False)).enqueue("value_error")
    run_jobs()
    says(row, "waits_for_retry", f"Failed 1 time; tries again at {INSTANT}\\.")


def test_a_job_of_an_unknown_task_says_what_to_deploy(database: str) -> None:
    live_worker(database)
    (receipt,) = submit(store_database(database), [Submission("gone.task", "default", Execution.THREAD, 0, "{}")])
    says(
        jobs.get(receipt.job_id),
        "unknown_task",
        f"Due since {INSTANT}; no task is named gone.task in this process \\(is its app in INSTALLED_APPS\\?\\): "
        "deploy the code .*"
        'or the job fails as "task not found"\\.',
    )


def test_a_job_whose_task_only_the_workers_do_not_know_says_so(database: str) -> None:
    live_worker(database)
    row = tasks.add.enqueue(1)
    worker_id, one = claimed(database)
    release(store_database(database), worker_id, [one.attempt_id], actor="w1", task_unknown=True)
    says(
        row,
        "unknown_task",
        f"Due since {INSTANT}; a worker found no task named .*add at {INSTANT} \\(is its app .*\\): deploy .*",
    )


@pytest.mark.parametrize("queues", [(), ("mail",)])
def test_a_queue_without_a_live_worker_gets_the_command_that_starts_one(database: str, queues: tuple[str, ...]) -> None:
    live_worker(database, role="scheduler")
    if queues:
        live_worker(database, queues=queues)
    row = tasks.add.enqueue(1)
    command = "python manage.py runscheduler"
    says(row, "no_worker", f"Due since {INSTANT}; no live worker serves queue default\\.", command)


def test_a_worker_that_fell_silent_is_not_alive_and_says_since_when(database: str, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "LEASE": 60, "RENEW": 10}
    live_worker(database, silent=14)
    row = tasks.add.enqueue(1)
    says(row, "next", f"Due since {INSTANT}; it is the next thread job of queue default\\.")
    store_database(database).execute("DELETE FROM jobs_worker")
    live_worker(database, silent=16)
    missing = f"no live worker serves queue default \\(w1 was last heard from at {INSTANT}\\)"
    says(row, "no_worker", f"Due since {INSTANT}; {missing}\\.", "python manage.py runscheduler")


def test_a_queue_that_is_declared_no_more_is_not_helped_by_another_worker(database: str, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "QUEUES": ["default", "old"]}
    live_worker(database)
    row = tasks.add.using(queue="old").enqueue(1)
    assert jobs.explain(row).command == "python manage.py runscheduler"
    settings.JOBS = {**settings.JOBS, "QUEUES": ["default"]}
    says(row, "no_worker", f"Due since {INSTANT}; queue old is not declared: add it to JOBS\\['QUEUES'\\], and .*\\.")


@pytest.mark.parametrize(
    ("task", "execution", "option"),
    [
        (tasks.add, "thread", "--threads 1"),
        (tasks.aadd, "async", "--async 1"),
        (tasks.padd, "process", "--processes 1"),
    ],
)
def test_a_worker_without_slots_for_this_execution_does_not_count(
    database: str, task: Any, execution: str, option: str
) -> None:
    live_worker(database, slots={one: int(one != execution) for one in Execution})
    live_worker(database, queues=("mail",))
    row = task.enqueue(1)
    command = f"python manage.py runscheduler {option}"
    missing = f"no live worker of queue default has slots for {execution} jobs"
    says(row, "no_worker", f"Due since {INSTANT}; {missing}\\.", command)
    live_worker(database, slots={Execution(execution): 1})
    assert jobs.explain(row).reason == "next"


def test_a_job_that_was_lost_once_waits_for_a_worker_with_child_processes(database: str) -> None:
    live_worker(database, slots={Execution.THREAD: 8, Execution.PROCESS: 0})
    row = tasks.add.enqueue(1)
    store_database(database).execute("UPDATE jobs_job SET losses = 1, execution = 'process'")
    alone = "after a lost attempt it runs alone in a child process, and no live worker of queue default has slots .*"
    says(
        row,
        "no_worker",
        f"Due since {INSTANT}; {alone}",
        "python manage.py runscheduler --processes 1",
    )


def test_a_waiting_job_needs_somebody_who_notices_that_it_is_due(database: str) -> None:
    live_worker(database, role="worker")
    row = tasks.add.using(delay=60).enqueue(1)
    command = "python manage.py runscheduler --role scheduler"
    says(row, "no_worker", f"Due at {INSTANT}; no live scheduler would notice that\\.", command)
    assert jobs.explain(tasks.add.enqueue(1)).reason == "next"  # already due: a worker is enough
    live_worker(database, role="scheduler")
    assert jobs.explain(row).reason == "waits_for_time"


def test_a_due_job_says_how_many_of_its_queue_and_execution_go_first(database: str) -> None:
    live_worker(database)
    ahead = [tasks.add.enqueue(n) for n in range(2)]
    tasks.aadd.enqueue(1)
    tasks.add.using(queue="mail").enqueue(1)
    tasks.add.using(priority=-1).enqueue(1)
    row = tasks.add.enqueue(9)
    says(row, "behind", f"Due since {INSTANT}; behind 2 thread jobs of queue default\\.")
    jobs.cancel(ahead[0])
    says(row, "behind", f"Due since {INSTANT}; behind 1 thread job of queue default\\.")
    jobs.cancel(ahead[1])
    says(row, "next", f"Due since {INSTANT}; it is the next thread job of queue default\\.")


def test_a_job_whose_workers_are_all_stuck_says_so(database: str) -> None:
    db, stuck = store_database(database), uuid4()
    live_worker(database, id=stuck)
    tasks.add.enqueue(1)
    claimed(database, worker_id=stuck)
    row = tasks.add.enqueue(2)
    assert jobs.explain(row).reason == "next"
    db.execute(
        f"UPDATE jobs_attempt SET outcome = 'timed_out', ended_at = {db.now}, lingering_until = {db.later('%(age)s')}",
        age=60,
    )
    held = "every thread slot of its live workers is held by a call that does not return"
    says(row, "stuck", f"Due since {INSTANT}; {held}\\.", "python manage.py runscheduler")
    # Not for what has other slots, nor once somebody else is there, nor when the mark is old.
    assert jobs.explain(tasks.aadd.enqueue(1)).reason == "next"
    live_worker(database, name="w2", queues=("mail",))
    assert jobs.explain(row).reason == "stuck"
    live_worker(database, name="w3")
    assert jobs.explain(row).reason == "next"
    db.execute("DELETE FROM jobs_worker WHERE name = 'w3'")
    db.execute(f"UPDATE jobs_attempt SET lingering_until = {db.later('%(age)s')}", age=-1)
    assert jobs.explain(row).reason == "next"


def test_a_long_line_is_counted_to_a_bound_only(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert COUNTED_AHEAD == 10_000
    monkeypatch.setattr("jobs.store.explain.COUNTED_AHEAD", 3)
    live_worker(database)
    jobs.enqueue_many([tasks.add.bind(n) for n in range(5)])
    assert "behind 3 or more jobs of queue default." in jobs.explain(tasks.add.enqueue(9)).sentence
