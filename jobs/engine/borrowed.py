"""Lend the caller's open transactions to a body, and take them back usable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, slots=True)
class _Lent:
    connection: BaseDatabaseWrapper
    savepoint: str
    savepoint_ids: list[Any]
    atomic_blocks: list[Any]


class Borrowed:
    """The open transactions of this thread, each with a savepoint to go back to.

    In a worker every statement outside `atomic()` is a transaction of its own; inside a test's transaction a
    failed one would break everything after it.
    """

    def __init__(self) -> None:
        self._lent = [
            _Lent(one, savepoint, list(one.savepoint_ids), list(one.atomic_blocks))
            for one in connections.all(initialized_only=True)
            if one.in_atomic_block and not one.needs_rollback and (savepoint := one.savepoint()) is not None
        ]

    def take_back(self) -> str:
        """An empty string, or why what the body wrote was rolled back."""
        wrong = ""
        for lent in self._lent:
            connection = lent.connection
            if connection.closed_in_transaction:
                continue
            left_open = connection.savepoint_ids != lent.savepoint_ids
            if not left_open and not _is_broken(connection):
                connection.savepoint_commit(lent.savepoint)
                continue
            connection.savepoint_ids[:] = lent.savepoint_ids
            connection.atomic_blocks[:] = lent.atomic_blocks
            connection.needs_rollback = False
            connection.savepoint_rollback(lent.savepoint)
            what = "with a transaction open on" if left_open else "with the caller's transaction broken on"
            wrong = f"the job returned {what} {connection.alias}: it was rolled back"
        return wrong


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    raw: Any = connection.connection
    if connection.needs_rollback:
        return True
    return connection.vendor == "postgresql" and raw is not None and raw.info.transaction_status.name == "INERROR"
