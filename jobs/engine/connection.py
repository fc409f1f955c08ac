"""The engine's own connections: READ COMMITTED on PostgreSQL, IMMEDIATE on SQLite, whatever the project sets."""

from __future__ import annotations

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import IsolationLevel

_MARK = "_jobs_engine"


def use_engine_connection(alias: str, *, patience: float) -> None:
    """Give this thread a connection of the engine's own; job code runs in other threads and never sees it.

    A server that does not even acknowledge within `patience` seconds counts as gone.
    """
    current = connections[alias]
    if getattr(current, _MARK, False):
        return
    current.close()
    connections[alias] = _engine_copy(current, patience)


def _engine_copy(connection: BaseDatabaseWrapper, patience: float) -> BaseDatabaseWrapper:
    settings = {**connection.settings_dict, "OPTIONS": {**connection.settings_dict.get("OPTIONS", {})}}
    # Kept open between rounds: an age of 0 would reconnect at every turn.
    settings["CONN_MAX_AGE"] = None
    settings["ATOMIC_REQUESTS"] = False
    settings["AUTOCOMMIT"] = True
    if connection.vendor == "postgresql":
        options = settings["OPTIONS"]
        options["isolation_level"] = IsolationLevel.READ_COMMITTED
        # A pool would be shared with the jobs, and an agent holds its connection for its whole life.
        options.pop("pool", None)
        # The system's own limits are a quarter of an hour for a statement, and two hours for a silent listener.
        seconds = max(1, round(patience))
        options.setdefault("connect_timeout", max(2, min(10, seconds)))
        options.setdefault("tcp_user_timeout", 1000 * seconds)
        options.setdefault("keepalives_idle", seconds)
        options.setdefault("keepalives_interval", seconds)
        options.setdefault("keepalives_count", 2)
    else:
        settings["OPTIONS"]["transaction_mode"] = "IMMEDIATE"
        settings["OPTIONS"].setdefault("timeout", 20)
    copied = type(connection)(settings, alias=connection.alias)
    setattr(copied, _MARK, True)
    return copied
