"""Renew the leases of what this process holds, on a thread and a connection of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error as DatabaseError

from jobs.engine.hints import hint_due
from jobs.engine.in_flight import Held, InFlight
from jobs.engine.loop import Loop
from jobs.engine.other_role import OtherRole
from jobs.store.database import Database, database
from jobs.store.extend import extend, note_progress, stop_lingering
from jobs.store.workers import WorkerCard, beat, leave

logger = logging.getLogger(__name__)

PROGRESS_EVERY = 1.0
EARLY = 0.8
"""Part of the renewal interval after which leases are renewed: a sweeper's two looks are one interval apart, and there
must be a renewal between them however late this thread is scheduled."""


class LeaseKeeper:
    def __init__(
        self,
        alias: str,
        card: WorkerCard,
        in_flight: InFlight,
        *,
        lease: float,
        renew: float,
        back_within: float,
        on_cancel: Callable[[Held], None],
        on_lost: Callable[[Held], None],
        is_asleep: Callable[[], bool],
        prepare: Callable[[], None],
    ) -> None:
        self._is_asleep = is_asleep
        self._alias = alias
        self._card = card
        self._other_role = OtherRole(card.role, silent_seconds=lease)
        self._in_flight = in_flight
        self._lease = lease
        self._renew = EARLY * renew
        self._on_cancel = on_cancel
        self._on_lost = on_lost
        self._renewed_at = float("-inf")
        self._progress_at = float("-inf")
        self._progress_is_new = False
        self._returned: list[Held] = []
        self.loop = Loop("lease-keeper", self._work, prepare=prepare, at_end=self._leave, longest_backoff=back_within)

    def start(self) -> None:
        self.loop.start()

    def stop(self, deadline: float) -> None:
        self.loop.stop(deadline)

    def note_progress(self) -> None:
        if not self._progress_is_new:
            self._progress_is_new = True
            self.loop.wake()

    def note_returned(self, held: Held) -> None:
        self._returned.append(held)
        self.loop.wake()

    def _leave(self) -> None:
        db = database(self._alias)
        try:
            self._last_words(db)
        except DatabaseError:
            # The connection may have been cut long ago: once more, on a new one.
            db.connection.close()
            self._last_words(db)

    def _last_words(self, db: Database) -> None:
        # A retry of a call that has returned need not wait for our lease.
        self._free_returned(db)
        leave(db, self._card.id)

    def _work(self) -> float:
        db = database(self._alias)
        now = time.monotonic()
        if now >= self._renewed_at + self._renew:
            self._renew_all(db)
            self._renewed_at = now
        unwritten = self._free_returned(db)
        if self._progress_is_new and now >= self._progress_at + PROGRESS_EVERY:
            self._progress_is_new = False
            self._progress_at = now
            news = self._in_flight.take_progress()
            if news:
                note_progress(db, self._card.id, news)
        until_renewal = self._renewed_at + self._renew - time.monotonic()
        until_progress = self._progress_at + PROGRESS_EVERY - time.monotonic() if self._progress_is_new else self._renew
        return max(0.01, min(until_renewal, until_progress, 0.1 if unwritten else self._renew))

    def _renew_all(self, db: Database) -> None:
        held = {one.claim.attempt_id: one for one in self._in_flight.held()}
        beat(db, self._card, asleep=self._is_asleep())
        self._other_role.look(db)
        if not held:
            return
        renewal = extend(
            db,
            self._card.id,
            {key: one.started_at for key, one in held.items() if not one.lingers},
            lease_seconds=self._lease,
            lingering=[key for key, one in held.items() if one.lingers],
        )
        for attempt_id in renewal.cancel_requested:
            self._on_cancel(held[attempt_id])
        for attempt_id in renewal.lost:
            # An outcome may have been recorded while the renewal was under way: then nothing was lost.
            if held[attempt_id].ended_at is None:
                self._on_lost(held[attempt_id])

    def _free_returned(self, db: Database) -> bool:
        """Whether a returned call still waits for its closed attempt to be written."""
        ready = [held for held in self._returned if held.recorded or held.lost]
        if ready:
            stop_lingering(db, self._card.id, [held.claim.attempt_id for held in ready])
            hint_due(db)  # a retry may have waited for this
            for held in ready:
                self._returned.remove(held)
                self._in_flight.drop(held)
        return bool(self._returned)
