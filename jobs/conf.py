"""The app's settings: one `JOBS` dict, read when first needed, with a default for everything."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.test.signals import setting_changed

from jobs.domain.duration import seconds_of
from jobs.domain.errors import InvalidOption, QueueNotDeclared
from jobs.domain.option_checks import checked_text
from jobs.domain.options import MAX_QUEUE_NAME
from jobs.domain.status import TERMINAL, Status
from jobs.domain.text import shown


def _seconds(name: str, value: Any) -> float:
    return seconds_of(value, name)


def _positive(name: str, value: Any) -> float:
    seconds = seconds_of(value, name)
    if seconds <= 0:
        raise InvalidOption(f"{name}={value!r}: give more than 0 seconds")
    return seconds


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidOption(f"{name}={value!r}: give a whole number from 1")
    return value


def _optional_count(name: str, value: Any) -> int | None:
    return None if value is None else _count(name, value)


def _slots(name: str, value: Any) -> int:
    return value if value == 0 and not isinstance(value, bool) else _count(name, value)


def _alias(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in django_settings.DATABASES:
        raise InvalidOption(f"{name}={value!r}: give an alias of DATABASES ({', '.join(django_settings.DATABASES)})")
    return value


def _queues(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or not value:
        raise InvalidOption(f"{name}={value!r}: give a list with at least one queue name")
    return tuple(dict.fromkeys(checked_text(queue, name, MAX_QUEUE_NAME) for queue in value))


LONGEST_RETENTION = timedelta(days=36_525)
# Days. Pairs, because a dataclass refuses a mutable default.
_RETENTION = (("completed", 7), ("cancelled", 7), ("failed", 30), ("timed_out", 30))


def _retention(name: str, value: Any) -> dict[Status, timedelta]:
    statuses = [str(status) for status in TERMINAL]
    if value is not _RETENTION and not isinstance(value, Mapping):
        raise InvalidOption(f"{name}={shown(value)}: give a dict with keys among {', '.join(statuses)}")
    given = dict(value)
    for key in given:
        if key not in statuses:
            raise InvalidOption(f"{name} has a key {shown(key)}: give keys among {', '.join(statuses)}")
    kept = {**dict(_RETENTION), **given}
    return {
        Status(status): _days(f"{name}[{str(status)!r}]", days) for status, days in kept.items() if days is not None
    }


def _days(name: str, value: Any) -> timedelta:
    try:
        kept = value if isinstance(value, timedelta) else timedelta(days=value)
    except (TypeError, ValueError, OverflowError):
        kept = timedelta.max
    if isinstance(value, bool) or not timedelta(0) <= kept <= LONGEST_RETENTION:
        raise InvalidOption(
            f"{name}={shown(value)}: give days from 0 to {LONGEST_RETENTION.days}, a timedelta, or None for ever"
        )
    return kept


def _setting(default: Any, check: Callable[[str, Any], Any]) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class JobsSettings:
    """Every key of `JOBS` with its default as it is written there. Durations: seconds or timedelta, kept as seconds."""

    DATABASE: str = _setting("default", _alias)
    QUEUES: tuple[str, ...] = _setting(("default",), _queues)
    MAX_ARGUMENT_BYTES: int = _setting(256 * 1024, _count)
    THREADS: int = _setting(8, _slots)
    ASYNC: int = _setting(100, _slots)
    PROCESSES: int = _setting(os.cpu_count() or 1, _slots)
    LEASE: float = _setting(60, _positive)
    RENEW: float = _setting(20, _positive)
    POLL: float = _setting(5, _positive)
    GRACE: float = _setting(25, _seconds)
    CANCEL_GRACE: float = _setting(10, _seconds)
    CLAIM_AHEAD: float = _setting(0.03, _seconds)
    TASK_NOT_FOUND_AFTER: float = _setting(600, _seconds)
    RETENTION: Any = _setting(_RETENTION, _retention)
    HISTORY_LIMIT: int | None = _setting(None, _optional_count)


KEYS = tuple(one.name for one in fields(JobsSettings))


def jobs_settings() -> JobsSettings:
    """The checked settings. Raises ImproperlyConfigured naming the key that is wrong."""
    return _read()


@lru_cache(maxsize=1)
def _read() -> JobsSettings:
    given = getattr(django_settings, "JOBS", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("JOBS must be a dict")
    for key in given:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It knows {', '.join(KEYS)}."
            raise ImproperlyConfigured(f"JOBS has no setting {key!r}.{hint}")
    values = {}
    for one in fields(JobsSettings):
        try:
            values[one.name] = one.metadata["check"](f"JOBS[{one.name!r}]", given.get(one.name, one.default))
        except InvalidOption as error:
            raise ImproperlyConfigured(str(error)) from None
    checked = JobsSettings(**values)
    if checked.RENEW * 2 > checked.LEASE:
        raise ImproperlyConfigured(
            f"JOBS['RENEW'] is {checked.RENEW:g} s: at most half of JOBS['LEASE'] ({checked.LEASE:g} s), or a single "
            "failed renewal loses the lease"
        )
    return checked


def require_declared(queue: str) -> None:
    """Raises QueueNotDeclared."""
    declared = jobs_settings().QUEUES
    if queue not in declared:
        raise QueueNotDeclared(
            f"queue {queue!r} is not declared: add it to JOBS['QUEUES'] (declared: {', '.join(declared)})"
        )


def _forget(*, setting: str, **_: Any) -> None:
    if setting in ("JOBS", "DATABASES"):
        _read.cache_clear()


setting_changed.connect(_forget, dispatch_uid="jobs.conf")
