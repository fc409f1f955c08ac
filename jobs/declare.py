"""Declare tasks: the `@job` decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from jobs.domain.context import Context
from jobs.domain.declaration import Declaration
from jobs.domain.execution import Execution
from jobs.domain.options import task_options
from jobs.domain.registry import registry
from jobs.domain.retry import Backoff, RetryPolicy
from jobs.domain.task import define
from jobs.submission import Submitter

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Q = ParamSpec("Q")
S = TypeVar("S")
Schedules = Declaration | Sequence[Declaration] | None


class Task(Submitter[P], Generic[P, R_co]):
    """A registered function. Calling it just runs the function; `enqueue` stores a job."""

    def __init__(
        self, function: Callable[..., R_co], *, name: str | None = None, schedule: Schedules = None, **options: Any
    ) -> None:
        definition = define(function, name=name, options=task_options(**options), schedule=schedule)
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
    schedule: Schedules = None,
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
    schedule: Schedules = None,
) -> Callable[[Callable[Q, S]], Task[Q, S]]: ...


def job(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Register a function as a task, bare or with options.

    `queue`, `priority` (-100 to 100, larger first), `timeout` (seconds or timedelta; None: none), `retry` (a
    RetryPolicy, a number of retries, or a callable `(attempt, exception) -> seconds or None`), `execution`
    ("async" for a coroutine function, "thread", or "process"), `at_most_once`, `max_lost` (3), `takes_context`,
    `name` (the dotted path; a given name stays when the function moves) `store_result` (True) and
    `schedule` (`cron(...)` or `every(...)`, or a list of them). Raises InvalidOption, InvalidRule and TaskNameTaken
    at import.
    """
    if function is not None:
        return Task(function)
    return lambda decorated: Task(decorated, **options)
