"""A registered function or job class with its name, defaults and parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.domain.arguments import Parameters, signature_of
from jobs.domain.declaration import Declaration, named
from jobs.domain.errors import InvalidOption
from jobs.domain.execution import Execution
from jobs.domain.option_checks import checked_text, member
from jobs.domain.options import MAX_TASK_NAME, TaskOptions
from jobs.domain.text import shown


@dataclass(frozen=True, slots=True, eq=False)
class TaskDefinition:
    name: str
    function: Callable[..., Any]
    """Called with the arguments, behind `context` if the task takes it. A job class: makes an instance and runs it."""
    options: TaskOptions
    parameters: Parameters
    place: str
    """Module and qualified name of the code."""
    schedules: tuple[Declaration, ...] = ()


def define(
    function_or_job_class: Callable[..., Any] | type,
    *,
    name: str | None = None,
    options: TaskOptions | None = None,
    schedule: Declaration | Sequence[Declaration] | None = None,
) -> TaskDefinition:
    """A checked task; raises `InvalidOption`. Without a chosen execution: async for `async def`, else thread.

    A job class has a method `run` (async) or `run_sync`, is made without arguments for every run, and may carry
    `execution` as a class attribute.
    """
    options = options or TaskOptions()
    if isinstance(function_or_job_class, type):
        function, chosen = _of_class(function_or_job_class)
    else:
        function, chosen = function_or_job_class, None
        if not callable(function):
            raise InvalidOption(f"{shown(function)} is not a function or job class")
    place = _place(function_or_job_class)
    execution = _execution(function, options.execution if options.execution_chosen else chosen, place)
    if options.takes_context:
        _require_context(function, place)
    task_name = _name(name, place, function_or_job_class)
    return TaskDefinition(
        name=task_name,
        function=function,
        options=replace(options, execution=execution),
        parameters=Parameters(function, options.takes_context),
        place=place,
        schedules=named(task_name, schedule),
    )


def _place(code: Callable[..., Any] | type) -> str:
    named = code if hasattr(code, "__qualname__") else type(code)
    place = f"{named.__module__}.{named.__qualname__}"
    lines = getattr(code, "__code__", None)
    # Two lambdas of one module have one name: the line tells them apart.
    return f"{place} ({lines.co_filename}:{lines.co_firstlineno})" if "<" in place and lines is not None else place


def _name(name: str | None, place: str, code: Callable[..., Any] | type) -> str:
    if name is not None:
        return checked_text(name, "name", MAX_TASK_NAME)
    if "<" in place or not hasattr(code, "__qualname__") or inspect.ismethod(code):
        raise InvalidOption(f"{place} cannot be found by its name: give it one with name=..., or move it to a module")
    if len(place) > MAX_TASK_NAME:
        raise InvalidOption(f"{place}: a task's name has at most {MAX_TASK_NAME} characters; give a shorter name=...")
    return place


def _execution(function: Callable[..., Any], chosen: Execution | None, place: str) -> Execution:
    called = (function, type(function).__call__)
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in called):
        raise InvalidOption(f"{place} has a yield in it: calling it would not run it")
    is_async = any(inspect.iscoroutinefunction(one) for one in called)
    if chosen is None:
        return Execution.ASYNC if is_async else Execution.THREAD
    if is_async and chosen is not Execution.ASYNC:
        raise InvalidOption(f"{place} is async: it runs on the loop, not with execution={chosen.value!r}")
    if not is_async and chosen is Execution.ASYNC:
        raise InvalidOption(f"{place} is not async: execution='async' needs `async def`")
    return chosen


def _require_context(function: Callable[..., Any], place: str) -> None:
    parameters = list(signature_of(function).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].name != "context" or parameters[0].kind not in positional:
        raise InvalidOption(f"{place}: with takes_context=True the first parameter must be named context")


def _of_class(job_class: type) -> tuple[Callable[..., Any], Execution | None]:
    """The function that makes an instance and runs it, and the execution that the class asks for."""
    place = _place(job_class)
    chosen: Execution | None = member("execution", Execution, None)(getattr(job_class, "execution", None))
    wanted = ["run"] if chosen is Execution.ASYNC else ["run_sync"] if chosen is not None else ["run", "run_sync"]
    found = [name for name in wanted if inspect.isfunction(inspect.getattr_static(job_class, name, None))]
    if len(found) != 1:
        raise InvalidOption(f"{place} is no job class: it needs exactly one method of {' or '.join(wanted)}")
    if inspect.isabstract(job_class):
        raise InvalidOption(f"{place} is abstract: {found[0]} must be written")
    try:
        signature_of(job_class).bind()
    except TypeError:
        raise InvalidOption(f"{place} must be creatable without arguments: every run makes a new instance") from None
    method = getattr(job_class, found[0])
    function: Any
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def run(*args: Any, **kwargs: Any) -> Any:
            return await getattr(job_class(), found[0])(*args, **kwargs)

        function = run
    else:

        @functools.wraps(method)
        def run_sync(*args: Any, **kwargs: Any) -> Any:
            return getattr(job_class(), found[0])(*args, **kwargs)

        function = run_sync
    signature = signature_of(method)
    without_self = signature.replace(parameters=list(signature.parameters.values())[1:])
    function.__signature__ = without_self
    return function, chosen
