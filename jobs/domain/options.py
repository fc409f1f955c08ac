"""What a task, and one submission of it, can be told about how to run.

Every public keyword argument is checked here and nowhere else.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from jobs.domain.duration import DAY_SECONDS, YEAR_SECONDS, seconds_of
from jobs.domain.errors import InvalidOption
from jobs.domain.execution import Execution
from jobs.domain.option_checks import (
    Check,
    checked_text,
    member,
    refuse_unknown,
    small_json,
    truth,
    whole_number,
)
from jobs.domain.priority import HIGHEST, LOWEST
from jobs.domain.retry import RetryPolicy
from jobs.domain.text import shown

MAX_TASK_NAME = 200
MAX_QUEUE_NAME = 64
MAX_UNIQUE_KEY = 200
MAX_TAG_NAME = 64
MAX_TAG_VALUE = 200
MAX_META_BYTES = 8 * 1024
"""Of `meta` and of `tags`, each, as JSON."""
MAX_DELAY_SECONDS = 3653 * DAY_SECONDS
MAX_LOSSES = 32_767


class UniqueScope(str, enum.Enum):
    """Until when a unique key is held."""

    UNTIL_STARTED = "until_started"
    UNTIL_FINISHED = "until_finished"

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How a task's jobs run when a submission says nothing else. Made by `task_options`, which checks."""

    queue: str = "default"
    priority: int = 0
    timeout_seconds: float | None = None
    retry: RetryPolicy = RetryPolicy()
    execution: Execution = Execution.THREAD
    execution_chosen: bool = False
    """Whether the author named an execution; otherwise `define` reads it from the function."""
    at_most_once: bool = False
    max_lost: int = 3
    takes_context: bool = False
    store_result: bool = True


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """What one submission adds. Instants are aware UTC, unless the project runs without USE_TZ and gave naive ones."""

    run_at: datetime | None = None
    delay_seconds: float | None = None
    deadline: datetime | None = None
    expires_at: datetime | None = None
    unique_key: str | None = None
    unique_scope: UniqueScope = UniqueScope.UNTIL_FINISHED
    tags: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)


def task_options(**given: object) -> TaskOptions:
    """The options of `@job(...)`, without its name; `InvalidOption` names the bad one."""
    refuse_unknown(given, _TASK_OPTIONS, "a task")
    checked = _checked(given, _TASK_OPTIONS)
    if "execution" in checked:
        chosen = checked.pop("execution")
        if chosen is not None:
            checked |= {"execution": chosen, "execution_chosen": True}
    return TaskOptions(**checked)


def submission(
    defaults: TaskOptions, earlier: SubmitOptions | None = None, /, *, use_tz: bool = True, **given: object
) -> tuple[TaskOptions, SubmitOptions]:
    """The options of `.using(...)`, over the task's own; `InvalidOption` names the bad one.

    `earlier` is what a previous `.using(...)` in the same chain said; run_at and delay replace each other.
    """
    for name in ("name", "takes_context"):
        if name in given:
            raise InvalidOption(f"{name} belongs to the task: give it to job(...), not to one submission")
    known = _RUN_OPTIONS.keys() | _SUBMIT_OPTIONS.keys() | _INSTANTS
    refuse_unknown(given, known, "a submission")
    changed = _checked(given, _RUN_OPTIONS)
    if "retry" in changed:
        changed["retry"] = _resubmitted(defaults.retry, changed["retry"])
    if changed.get("execution", defaults.execution) is None:
        del changed["execution"]
    elif (changed.get("execution", defaults.execution) is Execution.ASYNC) != (defaults.execution is Execution.ASYNC):
        raise InvalidOption("execution: only thread and process can be exchanged; async stays async")
    added = _checked(given, _SUBMIT_OPTIONS)
    for name in _INSTANTS & given.keys():
        value = given[name]
        added[name] = None if value is None else require_aware(value, name, use_tz)
    if added.get("run_at") is not None:
        added.setdefault("delay_seconds", None)
    elif added.get("delay_seconds") is not None:
        added["run_at"] = None
    submitted = replace(earlier or SubmitOptions(), **added)
    _refuse_contradictions(submitted, given)
    return replace(defaults, **changed), submitted


def require_aware(value: object, name: str, use_tz: bool) -> datetime:
    """The instant in UTC. Naive: an error under USE_TZ, otherwise returned as it is, for the door to place."""
    if not isinstance(value, datetime):
        raise InvalidOption(f"{name}={shown(value)}: give a datetime")
    if value.utcoffset() is None:
        if use_tz:
            raise InvalidOption(
                f"{name}={shown(value)} is naive, and USE_TZ is on: give an aware datetime, "
                f"such as django.utils.timezone.make_aware({name})"
            )
        return value
    try:
        return value.astimezone(timezone.utc)
    except OverflowError:
        raise InvalidOption(f"{name}={shown(value)} is outside the years 1 to 9999 in UTC") from None


def _refuse_contradictions(submitted: SubmitOptions, given: Mapping[str, object]) -> None:
    if submitted.run_at is not None and submitted.delay_seconds is not None:
        raise InvalidOption("give run_at or delay, not both")
    if given.get("unique_scope") is not None and submitted.unique_key is None:
        raise InvalidOption("unique_scope needs a unique_key")
    if submitted.run_at is not None and submitted.expires_at is not None:
        naive = {submitted.run_at.tzinfo is None, submitted.expires_at.tzinfo is None}
        if len(naive) == 1 and submitted.expires_at <= submitted.run_at:
            raise InvalidOption("expires_at is not after run_at: the job could never start")


def _resubmitted(own: RetryPolicy, given: RetryPolicy) -> RetryPolicy:
    """The numbers of one submission with the classes of the task: a row can store only the numbers."""
    for name in ("give_up_on", "retry_on", "backoff"):
        if getattr(given, name) not in ((), None, getattr(own, name)):
            raise InvalidOption(f"retry: {name} belongs to the task's own policy; a submission changes numbers only")
    return replace(given, give_up_on=own.give_up_on, retry_on=own.retry_on, backoff=own.backoff)


def _checked(given: Mapping[str, object], known: Mapping[str, tuple[str, Check]]) -> dict[str, Any]:
    return {known[name][0]: known[name][1](value) for name, value in given.items() if name in known}


def _timeout(value: object) -> float | None:
    if value is None:
        return None
    seconds = seconds_of(value, "timeout", at_most=YEAR_SECONDS)
    if seconds == 0:
        raise InvalidOption("timeout=0: give more than 0 seconds, or None for no limit")
    return seconds


def _tags(value: object) -> dict[str, Any]:
    tags = small_json(value, "tags", MAX_META_BYTES)
    for name, tag in tags.items():
        checked_text(name, f"the name of tag {shown(name)}", MAX_TAG_NAME)
        if isinstance(tag, str):
            if len(tag) > MAX_TAG_VALUE:
                raise InvalidOption(
                    f"tags.{name} has {len(tag)} characters; at most {MAX_TAG_VALUE}, or put it in meta"
                )
        elif not isinstance(tag, (int, float)):
            raise InvalidOption(f"tags.{name}={shown(tag)}: give text, a number or a truth value, or put it in meta")
    return tags


# Public keyword -> field, check.
_RUN_OPTIONS: dict[str, tuple[str, Check]] = {
    "queue": ("queue", lambda value: checked_text(value, "queue", MAX_QUEUE_NAME)),
    "priority": ("priority", whole_number("priority", LOWEST, HIGHEST)),
    "timeout": ("timeout_seconds", _timeout),
    "retry": ("retry", RetryPolicy.of),
    "execution": ("execution", member("execution", Execution, None)),
    "at_most_once": ("at_most_once", truth("at_most_once")),
    "max_lost": ("max_lost", whole_number("max_lost", 0, MAX_LOSSES)),
    "store_result": ("store_result", truth("store_result")),
}
_TASK_OPTIONS = _RUN_OPTIONS | {"takes_context": ("takes_context", truth("takes_context"))}
_SUBMIT_OPTIONS: dict[str, tuple[str, Check]] = {
    "delay": (
        "delay_seconds",
        lambda value: None if value is None else seconds_of(value, "delay", at_most=MAX_DELAY_SECONDS),
    ),
    "unique_key": (
        "unique_key",
        lambda value: None if value is None else checked_text(value, "unique_key", MAX_UNIQUE_KEY),
    ),
    "unique_scope": ("unique_scope", member("unique_scope", UniqueScope, UniqueScope.UNTIL_FINISHED)),
    "tags": ("tags", _tags),
    "meta": ("meta", lambda value: small_json(value, "meta", MAX_META_BYTES)),
}
_INSTANTS = {"run_at", "deadline", "expires_at"}
