"""Which database is ours: quickstart marks the empty one that it finds, and touches no other that it did not mark."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from django.db import DatabaseError, connection

from config.demo.quickstart.refusal import Refused
from config.demo.quickstart.summary import counted

MARK = "quickstart_mark"
_COMMAND = "DATABASE_URL=sqlite:///quickstart.sqlite3 python manage.py quickstart"
_ADVICE = f"Name a new one: {_COMMAND}"


def refuse_foreign_database() -> None:
    """Raises Refused when there are tables that quickstart did not make. Writes nothing."""
    tables = _tables()
    if tables and MARK not in tables:
        some = ", ".join(tables[:3]) + (", ..." if len(tables) > 3 else "")
        raise Refused(
            f"quickstart did not make {described()}, which has {counted(len(tables), 'table')} ({some}): "
            f"it will not touch it. {_ADVICE}"
        )


def mark_database() -> None:
    """Before the first migration: one that is interrupted half-way must not lock its user out. Safe twice.

    Raises Refused when nothing can be written there.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {MARK} (made_by varchar(100) NOT NULL)")
    except DatabaseError as error:
        raise _unusable(error) from error


def described() -> str:
    """The database in words, without its password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"the SQLite database {settings['NAME']}"
    place = ":".join(str(part) for part in (settings.get("HOST"), settings.get("PORT")) if part)
    return f"the {connection.display_name} database {settings['NAME']}{f' at {place}' if place else ''}"


def _tables() -> list[str]:
    try:
        return _sqlite_tables() if connection.vendor == "sqlite" else _server_tables()
    except (DatabaseError, sqlite3.Error) as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> Refused:
    said = str(error).strip().splitlines() or [type(error).__name__]  # libpq asks whether the server runs, further down
    advice = _ADVICE if connection.vendor == "sqlite" else f"Start the server, or use SQLite: {_COMMAND}"
    return Refused(f"{described()} cannot be used: {said[0].rstrip('.?! ')}. {advice}")


def _sqlite_tables() -> list[str]:
    if connection.settings_dict["NAME"] == ":memory:":
        raise Refused(f"an in-memory database cannot be shared by the scheduler's threads and processes. {_ADVICE}")
    path = Path(connection.settings_dict["NAME"])
    if not path.exists():
        if not path.parent.is_dir():
            raise Refused(f"{described()} cannot be made: there is no folder {path.parent}")
        return []
    # Not through Django, whose connection would first switch somebody else's file to WAL.
    foreign = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=20)
    try:
        rows = foreign.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [name for (name,) in rows if not name.startswith("sqlite_")]
    finally:
        foreign.close()


def _server_tables() -> list[str]:
    with connection.cursor() as cursor:
        return sorted(connection.introspection.table_names(cursor, include_views=True))
