"""What a job finds around it, and what it leaves behind: database connections healed before, clean after."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)


class _Thread(threading.local):
    may_have_connections = True
    """False after a body that left none behind: then there is nothing to heal before the next one."""


_thread = _Thread()


def heal_connections() -> None:
    """Before a body: drop this thread's connections that are broken or too old, as Django does at a request's start."""
    if not _thread.may_have_connections:
        return
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def clean_connections() -> str:
    """After a body: an empty string, or what it left open. Whatever was open is rolled back and closed."""
    left_open = []
    found = connections.all(initialized_only=True)
    _thread.may_have_connections = bool(found)
    for connection in found:
        connection.queries_log.clear()
        if _has_open_transaction(connection):
            left_open.append(connection.alias)
            _discard(connection)
        else:
            connection.close_if_unusable_or_obsolete()
    if not left_open:
        return ""
    return f"the job returned with a transaction open on {', '.join(left_open)}: it was rolled back"


def _has_open_transaction(connection: BaseDatabaseWrapper) -> bool:
    if connection.connection is None:
        # Closed inside atomic(): Django keeps the block's state until it is told otherwise.
        return bool(connection.in_atomic_block)
    if connection.in_atomic_block or not connection.get_autocommit():
        return True
    raw: Any = connection.connection
    try:
        if connection.vendor == "postgresql":
            return raw.info.transaction_status.name in ("ACTIVE", "INTRANS", "INERROR")
        return bool(raw.in_transaction)
    except Exception:
        logger.debug("cannot read the transaction state of %s", connection.alias, exc_info=True)
        return False


def _discard(connection: BaseDatabaseWrapper) -> None:
    # close() refuses inside atomic(), whose bookkeeping nobody will unwind any more: take the raw one.
    raw: Any = connection.connection
    try:
        if raw is not None:
            raw.close()
    except Exception:
        logger.debug("closing the connection to %s failed", connection.alias, exc_info=True)
    del connections[connection.alias]
