"""Declare tasks: the `@job` decorator and the job classes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from jobs.domain.context import Context
from jobs.domain.execution import Execution
from jobs.domain.options import task_options
from jobs.domain.registry import registry
from jobs.domain.retry import Backoff, RetryPolicy
from jobs.domain.task import define
from jobs.submission import Call, Submitter

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Q = ParamSpec("Q")
S = TypeVar("S")


class Task(Submitter[P], Generic[P, R_co]):
    """A registered function. Calling it just runs the function; `enqueue` stores a job."""

    def __init__(self, function: Callable[..., R_co], *, name: str | None = None, **options: Any) -> None:
        definition = define(function, name=name, options=task_options(**options))
        super().__init__(registry.add(definition))
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        result: R_co = self.definition.function(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


@overload
def job(function: Callable[Q, S], /) -> Task[Q, S]: ...


@overload
def job(
    *,
    takes_context: Literal[True],
    name: str | None = None,
    queue: str = "default",
    priority: int = 0,
    timeout: float | timedelta | None = None,
    retry: RetryPolicy | Backoff | int | None = None,
    execution: Literal["async", "thread", "process"] | Execution | None = None,
    at_most_once: bool = False,
    max_lost: int = 3,
    store_result: bool = True,
) -> Callable[[Callable[Concatenate[Context, Q], S]], Task[Q, S]]: ...


@overload
def job(
    *,
    takes_context: Literal[False] = False,
    name: str | None = None,
    queue: str = "default",
    priority: int = 0,
    timeout: float | timedelta | None = None,
    retry: RetryPolicy | Backoff | int | None = None,
    execution: Literal["async", "thread", "process"] | Execution | None = None,
    at_most_once: bool = False,
    max_lost: int = 3,
    store_result: bool = True,
) -> Callable[[Callable[Q, S]], Task[Q, S]]: ...


def job(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Register a function as a task, bare or with options.

    `queue`, `priority` (-100 to 100, larger first), `timeout` (seconds or timedelta; None: none), `retry` (a
    RetryPolicy, a number of retries, or a callable `(attempt, exception) -> seconds or None`), `execution`
    ("async" for a coroutine function, "thread", or "process"), `at_most_once`, `max_lost` (3), `takes_context`,
    `name` (the dotted path; a given name stays when the function moves) and `store_result` (True). Raises
    InvalidOption and TaskNameTaken at import.
    """
    if function is not None:
        return Task(function)
    return lambda decorated: Task(decorated, **options)


class _JobClass:
    """Registers every subclass that has a body: `class Digest(CpuBoundJob, queue="reports", timeout=60)`."""

    execution: Execution
    _submitter: Submitter[Any]

    def __init_subclass__(cls, *, name: str | None = None, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__()
        if not abstract:
            definition = define(cls, name=name, options=task_options(**options))
            cls._submitter = Submitter(registry.add(definition))

    @classmethod
    def using(cls, **options: Any) -> Submitter[Any]:
        return cls._submitter.using(**options)

    @classmethod
    def bind(cls, *args: Any, **kwargs: Any) -> Call:
        return cls._submitter.bind(*args, **kwargs)

    @classmethod
    def enqueue(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._submitter.enqueue(*args, **kwargs)

    @classmethod
    async def aenqueue(cls, *args: Any, **kwargs: Any) -> Any:
        return await cls._submitter.aenqueue(*args, **kwargs)


class AsyncJob(_JobClass, abstract=True):
    """Write `async def run(self, ...)`: it runs on the event loop."""

    execution = Execution.ASYNC


class BlockingJob(_JobClass, abstract=True):
    """Write `def run_sync(self, ...)`: it runs in a thread."""

    execution = Execution.THREAD


class CpuBoundJob(_JobClass, abstract=True):
    """Write `def run_sync(self, ...)`: it runs in a child process that can be killed."""

    execution = Execution.PROCESS
