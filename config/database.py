"""Database settings from one URL, with what a job queue needs of each vendor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

SCHEMES = ("postgres", "postgresql", "pgsql", "sqlite")
_SQLITE = "django.db.backends.sqlite3"
_POSTGRESQL = "django.db.backends.postgresql"

# IMMEDIATE: a transaction that reads and then writes fails at once with "database is locked" otherwise,
# whatever the timeout. FULL: an accepted job survives a power cut.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}


def sqlite(path: Path) -> dict[str, Any]:
    """One entry of `DATABASES` for an embedded database file."""
    return {"ENGINE": _SQLITE, "NAME": str(path), "OPTIONS": {**SQLITE_OPTIONS}}


def database_from_url(url: str, *, base_dir: Path) -> dict[str, Any]:
    """One entry of `DATABASES`; what the URL's own query string says wins over our defaults.

    A relative SQLite file is one under `base_dir`, not one under wherever a process was started. Raises
    ImproperlyConfigured, which does not repeat the password.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in SCHEMES:
        what = f"starts with {scheme}://" if separator else "is no address"
        raise ImproperlyConfigured(
            f"DATABASE_URL {what}: give postgres://user:password@host:5432/name or sqlite:///file.sqlite3; "
            "it must be PostgreSQL or SQLite"
        )
    try:
        database: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be read: special characters in the user or the password must be percent-encoded, "
            "and the port must be a number"
        ) from None
    if database["ENGINE"] == _SQLITE:
        database["OPTIONS"] = {**SQLITE_OPTIONS, **database.get("OPTIONS", {})}
        if database["NAME"] != ":memory:":
            database["NAME"] = str(base_dir / database["NAME"])
    elif database["ENGINE"] == _POSTGRESQL:
        database.setdefault("CONN_MAX_AGE", 60)
        database.setdefault("CONN_HEALTH_CHECKS", True)
    return database
