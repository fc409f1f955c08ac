"""Declaring tasks: the decorator, bare and with options, and the job classes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import jobs
from jobs import AsyncJob, BlockingJob, Context, CpuBoundJob, InvalidOption, Priority, RetryPolicy, job
from jobs.domain.errors import TaskNameTaken
from jobs.domain.registry import registry
from jobs.models import Job
from jobs.testing import run_jobs
from tests.support import tasks


@pytest.fixture(autouse=True)
def forget_tasks_of_the_test() -> Iterator[None]:
    known = set(registry.names())
    yield
    for name in set(registry.names()) - known:
        registry.remove(name)


def ran(row: Job) -> Any:
    run_jobs()
    found = jobs.get(row)
    assert found.status == "completed", found.runs.get()
    return found.result


def test_a_bare_decorator_registers_under_the_dotted_path() -> None:
    assert tasks.add.name == "tests.support.tasks.add"
    assert registry.get("tests.support.tasks.add") is tasks.add.definition


def test_a_decorator_with_options_keeps_them_for_every_submission(database: str) -> None:
    @job(
        name="tests.send",
        queue="mail",
        priority=Priority.HIGH,
        timeout=30,
        retry=RetryPolicy(max_retries=5, base_delay=2, max_delay=600),
        execution="process",
        at_most_once=True,
        max_lost=0,
        store_result=False,
    )
    def send(order_id: int, *, copy_to: str | None = None) -> dict[str, int]:
        return {"order": order_id}

    row = send.enqueue(42, copy_to="me")
    found = jobs.get(row)
    assert (found.task, found.queue, found.priority, found.timeout_seconds) == ("tests.send", "mail", 50, 30.0)
    assert (found.max_retries, found.execution, found.at_most_once, found.max_lost) == (5, "process", True, 0)
    assert found.store_result is False
    assert (found.payload.retry_base_seconds, found.payload.retry_max_seconds) == (2.0, 600.0)


def test_calling_a_task_just_runs_the_function(database: str) -> None:
    @job(name="tests.plain")
    def plain(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @job(name="tests.later")
    async def later(a: int) -> int:
        return a

    @job(name="tests.with_context", takes_context=True)
    def with_context(context: Context, a: int) -> int:
        return a

    assert (plain(1, b=2), asyncio.run(later(3)), with_context(None, 4)) == (3, 3, 4)
    assert (repr(plain), plain.__doc__) == ("<Task tests.plain>", "Adds.")
    assert Job.objects.using(database).count() == 0


def test_a_given_name_stays_when_the_function_moves(database: str) -> None:
    def old_home() -> str:
        return "old"

    def new_home() -> str:
        return "new"

    row = job(name="tests.stable")(old_home).enqueue()
    registry.remove("tests.stable")  # the next release: the module it was in is gone
    job(name="tests.stable")(new_home)
    assert ran(row) == "new"


def test_two_functions_cannot_have_one_name() -> None:
    job(name="tests.taken")(lambda: 1)

    def other() -> None: ...

    with pytest.raises(TaskNameTaken, match=r"two tasks are named 'tests\.taken'"):
        job(name="tests.taken")(other)


def test_a_task_may_take_its_context_first(database: str) -> None:
    @job(name="tests.about", takes_context=True)
    def about(context: Context, word: str) -> list[Any]:
        return [context.job_id, context.attempt, word]

    row = about.enqueue("x")
    assert ran(row) == [row.pk, 1, "x"]
    assert jobs.get(row).arguments == {"args": ["x"], "kwargs": {}}


def test_a_bad_option_is_refused_where_the_task_is_declared() -> None:
    with pytest.raises(InvalidOption, match=r"a task has no option 'priorty'; did you mean priority\?"):
        job(priorty=3)(print)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match="priority=101"):
        job(priority=101)(print)


@pytest.mark.parametrize(
    ("base", "method", "execution"),
    [(AsyncJob, "run", "async"), (BlockingJob, "run_sync", "thread"), (CpuBoundJob, "run_sync", "process")],
)
def test_the_base_class_sets_the_execution(database: str, base: Any, method: str, execution: str) -> None:
    def run_sync(self: Any, path: str) -> str:
        return path.upper()

    async def run(self: Any, path: str) -> str:
        return path.upper()

    body = run if method == "run" else run_sync
    digest: Any = type("Digest", (base,), {method: body, "__module__": __name__, "__qualname__": "Digest"})
    row = digest.enqueue("data.csv")
    assert (row.task, row.execution) == (f"{__name__}.Digest", execution)
    assert ran(row) == "DATA.CSV"


def test_a_job_class_takes_the_options_of_a_task_in_its_head(database: str) -> None:
    class Report(BlockingJob, name="tests.report", queue="mail", priority=Priority.LOW, takes_context=True):
        def run_sync(self, context: Context, year: int) -> list[int]:
            return [context.attempt, year]

    row = Report.using(unique_key="report").enqueue(2026)
    assert (row.task, row.queue, row.priority, row.unique_key) == ("tests.report", "mail", -50, "report")
    assert ran(row) == [1, 2026]
    (other,) = jobs.enqueue_many([Report.bind(2027)])
    assert other.arguments == {"args": [2027], "kwargs": {}}
    with pytest.raises(jobs.InvalidArguments, match=r"too many positional arguments"):
        Report.enqueue(1, 2)  # type: ignore[call-arg]


def test_every_run_of_a_job_class_has_an_instance_of_its_own(database: str) -> None:
    class Count(BlockingJob, name="tests.count"):
        total = 0

        def run_sync(self) -> int:
            self.total += 1
            return self.total

    assert [ran(Count.enqueue()), ran(Count.enqueue())] == [1, 1]


def test_a_job_class_without_its_method_is_refused() -> None:
    with pytest.raises(InvalidOption, match="needs exactly one method of run_sync"):

        class Empty(CpuBoundJob):
            def run(self) -> None: ...


def test_a_job_class_may_be_a_base_of_others(database: str) -> None:
    class Base(BlockingJob, abstract=True):
        word = ""

        def run_sync(self) -> str:
            return self.word

    class One(Base, name="tests.one"):
        word = "one"

    class Two(Base, name="tests.two"):
        word = "two"

    assert [ran(One.enqueue()), ran(Two.enqueue())] == ["one", "two"]
