"""System checks: what would make jobs fail later is said at start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from jobs.conf import jobs_settings
from jobs.discovery import failed

_level_of_failed_imports: ContextVar[int] = ContextVar("level_of_failed_imports", default=checks.ERROR)


def register_checks() -> None:
    register(check_settings)
    register(check_tasks)
    register(check_sqlite)


def check_settings(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if not settings.USE_TZ:
        messages.append(Error("jobs needs USE_TZ = True: its instants are stored in UTC.", id="jobs.E001"))
    try:
        alias = jobs_settings().DATABASE
    except ImproperlyConfigured as error:
        return [*messages, Error(str(error), id="jobs.E002")]
    vendor = connections[alias].vendor
    if vendor not in ("postgresql", "sqlite"):
        hint = "Set JOBS['DATABASE'] to the alias of a PostgreSQL or SQLite database."
        messages.append(Error(f"jobs does not run on {vendor} (database {alias!r}).", hint=hint, id="jobs.E003"))
    return messages


def check_tasks(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    level = _level_of_failed_imports.get()
    return [
        CheckMessage(level, f"{module} cannot be imported, so its tasks are unknown: {error}", id="jobs.E004")
        for module, error in failed.items()
    ]


@contextmanager
def failed_imports_only_warn() -> Iterator[None]:
    """For a scheduler: what cannot be imported hurts only its own tasks, and the others must run."""
    token = _level_of_failed_imports.set(checks.WARNING)
    try:
        yield
    finally:
        _level_of_failed_imports.reset(token)


def check_sqlite(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """SQLite is correct with stock options, but waits badly: say what to set. Opens no connection."""
    try:
        alias = jobs_settings().DATABASE
    except ImproperlyConfigured:
        return []
    if connections[alias].vendor != "sqlite":
        return []
    options = connections[alias].settings_dict.get("OPTIONS", {})
    if str(options.get("transaction_mode", "")).upper() in ("IMMEDIATE", "EXCLUSIVE"):
        return []
    hint = (
        f'DATABASES["{alias}"]["OPTIONS"] = '
        "{'transaction_mode': 'IMMEDIATE', 'timeout': 20, "
        "'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;'}"
    )
    return [
        checks.Warning(
            f"SQLite database {alias!r} opens deferred transactions: your own code that reads and then writes in one "
            'fails at once with "database is locked" while jobs run.',
            hint=hint,
            id="jobs.W001",
        )
    ]
