"""Notice what a job changed of its database session, so that the next job on the connection does not find it."""

from __future__ import annotations

import re
from collections.abc import Callable
from select import POLLIN, poll
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

_CHANGED = "_jobs_session_changed"
_REPORTED = "_jobs_session_reported"

# What ends with its transaction, or changes rows only. Anything else is taken for a change of the session: SET, PRAGMA,
# LISTEN, DO, CALL, CREATE TEMP ... A wrong guess costs one reconnect.
_OF_ITS_TRANSACTION = re.compile(
    r"[\s(]*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES|TABLE|EXPLAIN|SHOW|LOCK"
    r"|BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET\s+(?:LOCAL|TRANSACTION|CONSTRAINTS))\b",
    re.IGNORECASE,
)
_IN_DISGUISE = re.compile(r";\s*\S|set_config|advisory_lock|\bINTO\s+TEMP", re.IGNORECASE)
# The server tells these by itself whenever they change, however they were changed.
_TOLD = ("TimeZone", "DateStyle", "IntervalStyle", "client_encoding", "search_path", "default_transaction_read_only")


def changes_session(sql: object) -> bool:
    """Whether a statement may leave something behind that outlives its transaction."""
    if not isinstance(sql, str):
        return True
    return _OF_ITS_TRANSACTION.match(sql) is None or _IN_DISGUISE.search(sql) is not None


def watch(connection: BaseDatabaseWrapper) -> None:
    """Before a body. Costs a function call and two regular expressions per statement of the job."""
    if _notice not in connection.execute_wrappers:
        connection.execute_wrappers.append(_notice)
    setattr(connection, _CHANGED, False)
    setattr(connection, _REPORTED, None if connection.connection is None else _told(connection.connection))


def is_changed(connection: BaseDatabaseWrapper) -> bool:
    """After a body: whether its session is not what `watch` found."""
    if getattr(connection, _CHANGED, False):
        return True
    before, now = getattr(connection, _REPORTED, None), _told(connection.connection)
    if before is None and now is not None:  # connected by the body itself, past Django
        return now[0] != connection.timezone_name
    return before != now


def is_broken(connection: BaseDatabaseWrapper) -> bool:
    """Whether the server, or a job, has closed the connection meanwhile. Asks the server only if it has said something,
    which it does to an idle client when it hangs up."""
    raw: Any = connection.connection
    if raw is None or connection.vendor != "postgresql":
        return False
    if raw.closed:
        return True
    ear = poll()
    ear.register(raw.pgconn.socket, POLLIN)
    return bool(ear.poll(0)) and not connection.is_usable()


def _notice(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    connection = context["connection"]
    if changes_session(sql):
        setattr(connection, _CHANGED, True)
    elif getattr(connection, _REPORTED, None) is None:  # connected by this very body
        setattr(connection, _REPORTED, _told(connection.connection))
    return execute(sql, params, many, context)


def _told(raw: Any) -> tuple[str | None, ...] | None:
    """None: nothing is connected, or the server tells nothing."""
    info = getattr(raw, "info", None)
    return None if info is None or raw.closed else tuple(info.parameter_status(name) for name in _TOLD)
