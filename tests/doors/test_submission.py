"""Submitting: one stored row per accepted call, as the caller described it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connections
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

import jobs
from jobs import InvalidArguments, InvalidOption, Priority, QueueNotDeclared, RetryPolicy, TaskNotFound, job
from jobs.declare import Task
from jobs.domain.registry import registry
from jobs.models import Job
from jobs.testing import run_jobs
from tests.support import tasks
from tests.support.ground import ROOT

LATER = datetime(2100, 1, 1, 12, tzinfo=timezone.utc)


def stored(row: Job) -> Job:
    found: Job = Job.objects.using(row._state.db).select_related("payload").get(pk=row.pk)
    return found


def count(database: str) -> int:
    return int(Job.objects.using(database).count())


@pytest.fixture
def greet() -> Iterator[Task[[str], str]]:
    """A task of this test only."""

    def body(name: str) -> str:
        return f"hello {name}"

    yield job(name="tests.greet")(body)
    registry.remove("tests.greet")


def test_enqueue_stores_a_due_job_with_its_arguments(database: str) -> None:
    row = tasks.add.enqueue(1, b=2)
    found = stored(row)
    assert row.created is True
    assert (found.status, found.task, found.queue) == ("pending", "tests.support.tasks.add", "default")
    assert found.arguments == {"args": [1], "kwargs": {"b": 2}}


@pytest.mark.parametrize("later", [True, False])
def test_the_returned_row_is_what_a_reader_of_the_table_gets(database: str, later: bool) -> None:
    options: dict[str, Any] = {"unique_key": "k", "deadline": LATER, "expires_at": LATER, "timeout": 3}
    row = tasks.padd.using(**options, **({"run_at": LATER - timedelta(1)} if later else {})).enqueue(1)
    found = stored(row)
    for field in Job._meta.concrete_fields:
        assert getattr(row, field.attname) == getattr(found, field.attname), field.name
    assert row == found
    row.refresh_from_db()
    assert row.status == ("scheduled" if later else "pending")


def test_every_option_of_a_submission_reaches_the_row(database: str) -> None:
    row = tasks.add.using(
        queue="mail",
        priority=Priority.HIGH,
        timeout=timedelta(minutes=2),
        retry=RetryPolicy(max_retries=5, base_delay=2, max_delay=600, jitter=False),
        execution="process",
        at_most_once=True,
        max_lost=1,
        store_result=False,
        delay=60,
        deadline=LATER,
        expires_at=LATER,
        unique_key="receipt-42",
        unique_scope="until_started",
        tags={"customer": 7},
        meta={"trace": [1, 2]},
    ).enqueue(1)
    found = stored(row)
    assert (found.queue, found.priority, found.timeout_seconds, found.execution) == ("mail", 50, 120.0, "process")
    assert (found.at_most_once, found.max_lost, found.store_result) == (True, 1, False)
    assert 59 < (found.run_at - found.submitted_at).total_seconds() <= 60
    assert (found.status, found.deadline, found.expires_at) == ("scheduled", LATER, LATER)
    assert (found.unique_key, found.unique_slot, found.unique_until_started) == ("receipt-42", "receipt-42", True)
    assert found.max_retries == 5
    payload = found.payload
    assert (payload.retry_base_seconds, payload.retry_max_seconds, payload.retry_jitter) == (2, 600, False)
    assert (payload.tags, payload.meta) == ({"customer": 7}, {"trace": [1, 2]})
    assert payload.arguments == {"args": [1], "kwargs": {}}
    assert payload.submitted_execution == "process"


def test_using_leaves_the_task_itself_as_it_was(database: str) -> None:
    tasks.add.using(queue="mail", priority=Priority.LOW)
    row = tasks.add.enqueue(1)
    assert (row.queue, row.priority) == ("default", 0)


def test_a_run_at_of_the_past_is_due_now(database: str) -> None:
    row = tasks.add.using(run_at=datetime(2001, 1, 1, tzinfo=timezone.utc)).enqueue(1)
    assert (row.status, row.run_at) == ("pending", row.submitted_at)


def test_a_naive_run_at_is_refused_with_the_fix(database: str) -> None:
    with pytest.raises(InvalidOption, match=r"run_at=.* is naive, and USE_TZ is on: .*make_aware\(run_at\)"):
        tasks.add.using(run_at=datetime(2100, 1, 1))  # noqa: DTZ001 - naive on purpose


def test_an_undeclared_queue_is_refused_with_the_declared_ones(database: str) -> None:
    with pytest.raises(QueueNotDeclared, match=r"queue 'post' is not declared.*declared: default, mail"):
        tasks.add.using(queue="post").enqueue(1)
    assert count(database) == 0


def test_a_queue_may_be_declared_at_any_time(database: str, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "QUEUES": ["default", "post"]}
    assert tasks.add.using(queue="post").enqueue(1).queue == "post"
    with pytest.raises(QueueNotDeclared):
        tasks.add.using(queue="mail").enqueue(1)


def test_a_wrong_call_fails_at_the_call_site_before_any_sql(database: str) -> None:
    with CaptureQueriesContext(connections[database]) as queries:
        with pytest.raises(InvalidArguments, match=r"add\(\): too many positional arguments"):
            tasks.add.enqueue(1, 2, 3)  # type: ignore[call-arg]
        with pytest.raises(InvalidArguments, match=r"kwargs\.b\[1\]\.price is nan"):
            tasks.add.bind(1, b=[0, {"price": float("nan")}])  # type: ignore[arg-type]
        with pytest.raises(InvalidArguments, match=r"args\[0\] is a model instance; give its key"):
            tasks.add.enqueue(Job())  # type: ignore[arg-type]
    assert len(queries) == 0


def test_the_size_limit_of_arguments_is_a_setting(database: str, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "MAX_ARGUMENT_BYTES": 100}
    tasks.leave_mark.enqueue("x" * 60)
    with pytest.raises(InvalidArguments, match="takes more than 100 bytes as JSON"):
        tasks.leave_mark.enqueue("x" * 100)


def test_names_keys_and_queues_of_the_greatest_length_are_stored(database: str, settings: Settings) -> None:
    name, key, queue = "n" * 200, "\U0001f600" * 200, "q" * 64
    settings.JOBS = {**settings.JOBS, "QUEUES": [queue]}
    long_named = job(name=name)(lambda: None)
    try:
        found = stored(long_named.using(unique_key=key, queue=queue).enqueue())
    finally:
        registry.remove(name)
    assert (found.task, found.unique_key, found.queue) == (name, key, queue)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"unique_key": "k" * 201}, "unique_key must have 1 to 200 characters; this one has 201"),
        ({"queue": "q" * 65}, "queue must have 1 to 64 characters; this one has 65"),
        ({"unique_key": "a\0b"}, "unique_key=.* contains a control character"),
    ],
)
def test_a_key_or_queue_that_is_too_long_is_refused_in_words(database: str, option: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        tasks.add.using(**option)


def test_a_name_that_is_too_long_is_refused_in_words() -> None:
    with pytest.raises(InvalidOption, match="name must have 1 to 200 characters; this one has 201"):
        job(name="n" * 201)(lambda: None)


def test_a_task_that_is_not_registered_any_more_cannot_be_submitted(database: str, greet: Task[[str], str]) -> None:
    registry.remove("tests.greet")
    for door in (greet.enqueue, greet.bind, greet.using(delay=1).enqueue, async_to_sync(greet.aenqueue)):
        with pytest.raises(TaskNotFound, match=r"'tests\.greet' is not registered"):
            door("you")
    assert count(database) == 0


def test_calls_of_any_tasks_are_stored_in_their_order(database: str, greet: Task[[str], str]) -> None:
    calls = [tasks.add.bind(1), greet.using(queue="mail").bind("you"), tasks.add.using(delay=5).bind(2)]
    rows = jobs.enqueue_many(calls)
    assert [row.task for row in rows] == ["tests.support.tasks.add", "tests.greet", "tests.support.tasks.add"]
    assert [row.pk for row in rows] == sorted(row.pk for row in rows)
    assert [stored(row).arguments["args"] for row in rows] == [[1], ["you"], [2]]
    assert [row.status for row in rows] == ["pending", "pending", "scheduled"]


def test_no_calls_are_no_jobs(database: str) -> None:
    assert jobs.enqueue_many([]) == []
    assert jobs.enqueue_many(iter(())) == []


def test_five_thousand_calls_take_one_statement_per_batch(database: str) -> None:
    calls = [tasks.add.bind(n) for n in range(5000)]
    with CaptureQueriesContext(connections[database]) as queries:
        rows = jobs.enqueue_many(calls)
    statements = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    # SQLite needs two inserts and one look at what they skipped.
    assert len(statements) == (5 if database == "postgres" else 10)
    assert count(database) == len({row.pk for row in rows}) == 5000
    assert stored(rows[4999]).arguments == {"args": [4999], "kwargs": {}}


def test_many_calls_are_stored_together_or_not_at_all(live_database: str) -> None:
    calls = [tasks.add.bind(n) for n in range(1001)]
    # Past every check, so that the database refuses the second batch.
    object.__setattr__(calls[1000].submission, "queue", None)
    with pytest.raises(IntegrityError):
        jobs.enqueue_many(calls)
    assert count(live_database) == 0


def test_the_async_doors_store_the_same(database: str) -> None:
    one = async_to_sync(tasks.add.aenqueue)(1, b=2)
    two, three = async_to_sync(jobs.aenqueue_many)([tasks.add.bind(2), tasks.add.bind(3)])
    assert [stored(row).arguments["args"] for row in (one, two, three)] == [[1], [2], [3]]
    assert async_to_sync(tasks.add.using(priority=7).aenqueue)(4).priority == 7


def test_a_submitted_job_runs_with_what_it_was_given(database: str) -> None:
    row = tasks.add.enqueue(20, b=22)
    assert len(run_jobs()) == 1
    found = jobs.get(row)
    assert (found.status, found.result) == ("completed", 42)


def test_no_door_but_the_submit_verb_inserts_jobs() -> None:
    """What is not a registered task cannot come in by another way."""
    inserting = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "jobs").rglob("*.py")
        if "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and "INSERT INTO jobs_job " in str(node.value)
    }
    assert inserting == {"jobs/store/submit.py"}


def test_a_task_that_was_called_instead_of_bound_is_refused_with_what_to_write(database: str) -> None:
    with pytest.raises(InvalidArguments, match=r"number 1 is 3, not a bound call of a task: pass task\.bind\(\.\.\.\)"):
        jobs.enqueue_many([tasks.add.bind(1), tasks.add(1, 2)])  # type: ignore[list-item]
    assert not Job.objects.exists()
