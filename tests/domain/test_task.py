from __future__ import annotations

import abc
import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from typing import Any

import pytest

from jobs.domain.errors import InvalidOption
from jobs.domain.execution import Execution
from jobs.domain.options import TaskOptions, task_options
from jobs.domain.task import define


def send(order_id: int) -> int:
    return order_id + 1


async def fetch(url: str) -> str:
    return url.upper()


def with_context(context: object, day: date) -> object:
    return day


class AsyncBase:
    execution = Execution.ASYNC


class Fetch(AsyncBase):
    async def run(self, day: date) -> date:
        return day


class Digest:
    execution = "process"

    def run_sync(self, path: str, *, day: date | None = None) -> tuple[int, str, date | None]:
        return id(self), path, day


def test_a_function_becomes_a_task_named_by_its_dotted_path() -> None:
    definition = define(send)
    assert definition.name == definition.place == f"{__name__}.send"
    assert definition.function is send
    assert definition.options == TaskOptions()
    assert str(definition.parameters.signature) == "(order_id: 'int') -> 'int'"


def test_a_name_of_its_own_stays_when_the_function_moves() -> None:
    definition = define(send, name="mail.send", options=task_options(queue="mail"))
    assert (definition.name, definition.place) == ("mail.send", f"{__name__}.send")
    assert definition.options.queue == "mail"


def test_the_execution_follows_the_function_unless_it_is_chosen() -> None:
    assert define(send).options.execution is Execution.THREAD
    assert define(fetch).options.execution is Execution.ASYNC
    assert define(send, options=task_options(execution="process")).options.execution is Execution.PROCESS
    assert define(fetch, options=task_options(execution="async")).options.execution is Execution.ASYNC


def test_an_execution_that_cannot_run_the_function_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"send is not async: execution='async' needs"):
        define(send, options=task_options(execution="async"))
    for execution in ("thread", "process"):
        with pytest.raises(InvalidOption, match=f"fetch is async.*{execution}"):
            define(fetch, options=task_options(execution=execution))


def local() -> Callable[[], None]:
    def inner() -> None: ...

    return inner


class Sender:
    def send(self) -> None: ...

    def __call__(self) -> None: ...


class AsyncSender:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize("code", [local(), lambda: 1, Sender().send, Sender(), functools.partial(send, 1)])
def test_code_that_no_other_process_could_find_by_name_needs_a_name(code: Callable[..., Any]) -> None:
    with pytest.raises(InvalidOption, match="name="):
        define(code)
    assert define(code, name="given").name == "given"


def test_callables_of_any_kind_get_the_right_execution() -> None:
    assert define(Sender(), name="x").options.execution is Execution.THREAD
    assert define(AsyncSender(), name="x").options.execution is Execution.ASYNC
    assert define(functools.partial(fetch, "x"), name="x").options.execution is Execution.ASYNC
    assert define(print, name="x").options.execution is Execution.THREAD


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("code", [generator, async_generator, functools.partial(generator)])
def test_a_generator_function_is_refused_because_its_body_would_not_run(code: Callable[..., Any]) -> None:
    with pytest.raises(InvalidOption, match="yield"):
        define(code, name="x")


@pytest.mark.parametrize("name", ["", "n" * 201, "a\0b", "a\ud800", 5])
def test_a_name_that_cannot_be_stored_is_refused(name: Any) -> None:
    with pytest.raises(InvalidOption, match=r"^name"):
        define(send, name=name)


def test_a_default_name_that_is_too_long_asks_for_a_shorter_one() -> None:
    def task() -> None: ...

    task.__qualname__ = "t" * 200
    with pytest.raises(InvalidOption, match="at most 200 characters; give a shorter name="):
        define(task)


def test_what_is_not_callable_is_refused() -> None:
    with pytest.raises(InvalidOption, match="'x' is not a function"):
        define("x")  # type: ignore[arg-type]


def test_a_task_with_context_names_its_first_parameter_so() -> None:
    options = task_options(takes_context=True)
    definition = define(with_context, options=options)
    assert list(definition.parameters.signature.parameters) == ["day"]

    def keyword(*, context: object) -> None: ...

    for code in (send, local(), keyword):
        with pytest.raises(InvalidOption, match="the first parameter must be named context"):
            define(code, name="x", options=options)


def test_a_job_class_is_made_anew_for_every_run() -> None:
    definition = define(Digest)
    assert definition.name == definition.place == f"{__name__}.Digest"
    assert definition.options.execution is Execution.PROCESS
    assert list(definition.parameters.signature.parameters) == ["path", "day"]
    args, kwargs = definition.parameters.decode(
        json.loads(definition.parameters.encode(("data.csv",), {"day": date(2026, 1, 1)}, max_bytes=1000))
    )
    _, path, day = definition.function(*args, **kwargs)
    assert (path, day) == ("data.csv", date(2026, 1, 1))

    class Counting:
        made = 0

        def __init__(self) -> None:
            type(self).made += 1

        def run_sync(self) -> None: ...

    counted = define(Counting, name="x")
    assert counted.options.execution is Execution.THREAD
    assert Counting.made == 0
    counted.function()
    counted.function()
    assert Counting.made == 2


def test_an_async_job_class_gives_a_coroutine() -> None:
    definition = define(Fetch)
    assert definition.options.execution is Execution.ASYNC
    assert asyncio.run(definition.function(date(2026, 1, 1))) == date(2026, 1, 1)


def test_a_job_class_with_context_gets_it_behind_self() -> None:
    class Shown:
        def run_sync(self, context: object, path: str) -> tuple[object, str]:
            return context, path

    definition = define(Shown, name="x", options=task_options(takes_context=True))
    assert list(definition.parameters.signature.parameters) == ["path"]
    assert definition.function("the context", "data.csv") == ("the context", "data.csv")


def test_a_job_class_that_cannot_run_is_refused() -> None:
    class Nothing: ...

    class Both:
        def run_sync(self) -> None: ...
        async def run(self) -> None: ...

    class NotAsync(AsyncBase):
        def run(self) -> None: ...

    class Abstract(abc.ABC):
        @abc.abstractmethod
        def run_sync(self) -> None: ...

    class Needy:
        def __init__(self, path: str) -> None: ...
        def run_sync(self) -> None: ...

    class Misspelt:
        execution = "proces"

        def run_sync(self) -> None: ...

    class Static:
        @staticmethod
        def run_sync() -> None: ...

    for job_class, words in {
        Nothing: "exactly one method of run or run_sync",
        Both: "exactly one method",
        NotAsync: "is not async",
        Abstract: "is abstract",
        Needy: "creatable without arguments",
        Misspelt: "execution='proces'",
        Static: "exactly one method",
    }.items():
        with pytest.raises(InvalidOption, match=words):
            define(job_class, name="x")
    with pytest.raises(InvalidOption, match="is not async"):
        define(Digest, options=task_options(execution="async"))
    assert define(Digest, options=task_options(execution="thread")).options.execution is Execution.THREAD
