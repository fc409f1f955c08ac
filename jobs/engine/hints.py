"""Hints that wake sleepers, in this process and on PostgreSQL; never needed, since the poll is the truth."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import transaction

from jobs.domain.text import first_line
from jobs.store.database import Database, PostgreSQL

logger = logging.getLogger(__name__)

DUE, CANCEL = "jobs_due", "jobs_cancel"

Wake = Callable[[], None]
Cancelled = Callable[[int], None]


class Hints:
    """Sleepers of this process, by database alias."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sleepers: dict[str, tuple[tuple[Wake, Cancelled], ...]] = {}

    def add(self, alias: str, wake: Wake, cancelled: Cancelled) -> None:
        with self._lock:
            self._sleepers[alias] = (*self._sleepers.get(alias, ()), (wake, cancelled))

    def remove(self, alias: str, wake: Wake, cancelled: Cancelled) -> None:
        with self._lock:
            left = tuple(one for one in self._sleepers.get(alias, ()) if one != (wake, cancelled))
            self._sleepers[alias] = left

    def due(self, alias: str) -> None:
        for wake, _ in self._sleepers.get(alias, ()):
            wake()

    def cancelled(self, alias: str, job_id: int) -> None:
        for _, cancelled in self._sleepers.get(alias, ()):
            cancelled(job_id)


hints = Hints()


def hint_due(db: Database) -> None:
    """After the caller's commit: something may be due sooner than sleepers think."""

    def send() -> None:
        hints.due(db.alias)
        if isinstance(db, PostgreSQL):
            # Only where a sleeper has left its mark: NOTIFY takes a lock at commit that serialises the notifying.
            _send(db, f"SELECT pg_notify('{DUE}', '') WHERE EXISTS (SELECT 1 FROM jobs_worker WHERE asleep)")

    _after_commit(db, send)


def hint_cancel(db: Database, job_id: int) -> None:
    """After the caller's commit: a running job was asked to stop."""

    def send() -> None:
        hints.cancelled(db.alias, job_id)
        if isinstance(db, PostgreSQL):
            _send(db, f"SELECT pg_notify('{CANCEL}', %(job_id)s)", job_id=str(job_id))

    _after_commit(db, send)


def _after_commit(db: Database, send: Callable[[], None]) -> None:
    connection = transaction.get_connection(db.alias)
    # With autocommit switched off by hand there is no commit to wait for that Django would see: the poll serves.
    if connection.in_atomic_block or connection.get_autocommit():
        db.after_commit(send)


def _send(db: Database, sql: str, **parameters: str) -> None:
    try:
        db.rows(sql, **parameters)
    except DatabaseError as error:
        logger.info("a wake-up hint was not sent; the poll will find the job: %s", first_line(str(error)))
