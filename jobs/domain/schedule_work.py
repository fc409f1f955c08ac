"""What a schedule's jobs are made of, checked before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.domain.declaration import refuse_submit_options
from jobs.domain.errors import InvalidArguments, InvalidOption, TaskNotFound
from jobs.domain.factories import factories
from jobs.domain.options import submission
from jobs.domain.registry import registry
from jobs.domain.task import TaskDefinition

MAX_STORED_BYTES = 64 * 1024 * 1024
"""A bound for the check; how much may be stored is the doors' to say."""


def mistakes(task: str, factory: str, arguments: object, options: object) -> dict[str, str]:
    """What is wrong, by field: task, factory, arguments, options. Empty: a job could be made of it here and now."""
    found = dict(_of_factory(task, factory, arguments)) if factory else {}
    try:
        definition = registry.get(task)
    except TaskNotFound as error:
        return {**found, "task": str(error)}
    if not factory:
        found |= _of_arguments(definition, arguments)
    return {**found, **dict(_of_options(definition, options))}


def _of_factory(task: str, factory: str, arguments: object) -> Iterator[tuple[str, str]]:
    try:
        known = factories.get(factory)
    except TaskNotFound as error:
        yield "factory", str(error)
        return
    if known.task != task and registry.find(task) is not None:
        yield "factory", f"factory {factory!r} gives arguments of task {known.task!r}, not of {task!r}"
    if not isinstance(arguments, dict) or arguments.get("args") or arguments.get("kwargs"):
        yield "arguments", "the factory gives the arguments: leave them empty"


def _of_arguments(definition: TaskDefinition, arguments: object) -> Iterator[tuple[str, str]]:
    stored = {"args": [], "kwargs": {}, **arguments} if isinstance(arguments, dict) else arguments
    try:
        args, kwargs = definition.parameters.decode(stored)
        definition.parameters.encode(args, kwargs, max_bytes=MAX_STORED_BYTES)
    except InvalidArguments as error:
        yield "arguments", str(error)


def _of_options(definition: TaskDefinition, options: object) -> Iterator[tuple[str, str]]:
    if not isinstance(options, dict):
        yield "options", 'give an object, as in {"queue": "mail"}'
        return
    given: dict[str, Any] = {name: value for name, value in options.items() if name != "use_tz"}
    try:
        if len(given) < len(options):
            raise InvalidOption("a submission has no option 'use_tz'")
        refuse_submit_options(given)
        submission(definition.options, **given)
    except InvalidOption as error:
        yield "options", str(error)
