"""What a job finds around it, and what it leaves behind: database connections healed before, clean after."""

from __future__ import annotations

import logging
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.engine import session

logger = logging.getLogger(__name__)


def heal_connections() -> None:
    """Before a body: drop this thread's connections that are broken or too old, as Django does at a request's start.

    Also those that were cut off since the last body: outside requests Django looks at them only when they are used.
    """
    for connection in connections.all():
        if connection.connection is not None:
            connection.close_if_unusable_or_obsolete()
            if session.is_broken(connection):
                connection.close()
        session.watch(connection)


def clean_connections() -> str:
    """After a body: an empty string, or what it left open. Whatever was open is rolled back and closed."""
    undone = []
    for connection in connections.all():  # all are made by now; asking whether they are takes as long again
        connection.queries_log.clear()
        if connection.connection is None and not (connection.closed_in_transaction or connection.in_atomic_block):
            continue
        if connection.connection is None and connection.closed_in_transaction:
            undone.append(f"closed its connection to {connection.alias} inside a transaction")
            _discard(connection)
        elif _has_open_transaction(connection):
            undone.append(f"returned with a transaction open on {connection.alias}")
            _discard(connection)
        elif session.is_changed(connection):
            _discard(connection)
        else:
            connection.close_if_unusable_or_obsolete()
    return f"the job {' and '.join(undone)}: it was rolled back" if undone else ""


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
    raw: Any = connection.connection
    try:
        if raw is not None and connection.vendor == "postgresql":
            raw.close()  # first: a pool throws a closed one away, and gives any other to the next job as it is
        # Nobody will unwind the block any more, and close() refuses inside one.
        connection.in_atomic_block = False
        connection.close()
    except Exception:
        logger.debug("closing the connection to %s failed", connection.alias, exc_info=True)
    del connections[connection.alias]
