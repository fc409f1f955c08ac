"""Wake the dispatcher when another process submits or cancels: LISTEN on PostgreSQL, data_version on SQLite."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from django.db import connections

from jobs.engine.hints import CANCEL, DUE, hints
from jobs.engine.loop import Loop

logger = logging.getLogger(__name__)

LISTEN_FOR = 1.0
LOOK_EVERY = 0.1


class Waker:
    """A hint is never needed: whatever it misses, the poll finds."""

    def __init__(
        self, alias: str, *, wake: Callable[[], None], cancelled: Callable[[int], None], prepare: Callable[[], None]
    ) -> None:
        self._alias = alias
        self._wake = wake
        self._cancelled = cancelled
        self._version: int | None = None
        self._listening_on: Any = None
        self._bell, self._heard = socket.socketpair()
        work = self._listen if connections[alias].vendor == "postgresql" else self._look
        self.loop = Loop("waker", work, prepare=prepare)

    def start(self) -> None:
        hints.add(self._alias, self._wake, self._cancelled)
        self.loop.start()

    def stop(self, deadline: float) -> None:
        hints.remove(self._alias, self._wake, self._cancelled)
        self.loop.ask_to_stop()
        self._bell.close()  # ends the listening at once
        if self.loop.stop(deadline):
            self._heard.close()

    def _listen(self) -> float:
        connection = connections[self._alias]
        connection.ensure_connection()
        raw: Any = connection.connection
        if raw is not self._listening_on:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {DUE}")
                cursor.execute(f"LISTEN {CANCEL}")
            self._listening_on = raw
            # What was sent while nobody listened.
            self._wake()
        with connection.wrap_database_errors:
            notices = list(raw.notifies(timeout=0))
            ear = raw.pgconn.socket
        for notice in notices:
            if notice.channel == CANCEL and notice.payload.isdigit():
                self._cancelled(int(notice.payload))
            else:
                self._wake()
        wait([ear, self._heard], LISTEN_FOR)
        return 0.0

    def _look(self) -> float:
        with connections[self._alias].cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version = cursor.fetchone()[0]
        if version != self._version:
            self._version = version
            self._wake()
        return LOOK_EVERY
