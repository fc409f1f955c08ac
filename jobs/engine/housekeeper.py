"""Take back what dead workers held, prune what is past its retention, forget silent workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from jobs.engine.hints import hint_due
from jobs.engine.loop import Loop
from jobs.engine.options import EngineOptions
from jobs.store.database import Database, database
from jobs.store.prune import prune, prune_occurrences
from jobs.store.reclaim import overdue, reclaim, tell_lost
from jobs.store.workers import forget_silent

logger = logging.getLogger(__name__)


class TwoLooks:
    """Which attempts two looks, far enough apart, found overdue with an unchanged lease (promise G3)."""

    def __init__(self, apart: float) -> None:
        self._apart = apart
        self._first: dict[int, tuple[datetime, float]] = {}

    def forget(self) -> None:
        """A database error lies between the looks: look anew, or an outage would kill living jobs."""
        self._first.clear()

    def look(self, seen: dict[int, datetime], now: float) -> dict[int, datetime]:
        """`seen` maps overdue attempts to their lease's end; `now` is this process's monotonic clock."""
        confirmed = {}
        first = {}
        for attempt_id, lease_until in seen.items():
            before = self._first.get(attempt_id)
            if before is None or before[0] != lease_until:
                first[attempt_id] = (lease_until, now)
            elif now - before[1] >= self._apart:
                confirmed[attempt_id] = lease_until
            else:
                first[attempt_id] = before
        self._first = first
        return confirmed


class Housekeeper:
    """Every process of the scheduler role has one: each of its verbs may run any number of times at once."""

    def __init__(self, options: EngineOptions, *, prepare: Callable[[], None]) -> None:
        self._options = options
        self._looks = TwoLooks(options.renew)
        self._pruned_at = float("-inf")
        self.loop = Loop("housekeeper", self._work, prepare=prepare)

    def start(self) -> None:
        self.loop.start()

    def stop(self, deadline: float) -> None:
        self.loop.stop(deadline)

    def _work(self) -> float:
        if self.loop.errors:
            self._looks.forget()
        db = database(self._options.alias)
        try:
            self._sweep(db)
            forget_silent(db, silent_seconds=max(300.0, 5 * self._options.lease))
            if time.monotonic() - self._pruned_at >= self._options.prune_every:
                self._prune(db)
        except Exception:
            self._looks.forget()
            raise
        # A little more than one renewal interval, so that each sweep's look counts as the second one.
        return self._options.renew + 0.01

    def _sweep(self, db: Database) -> None:
        asked_at = time.monotonic()
        seen = overdue(db)
        if time.monotonic() - asked_at > self._options.renew / 2:
            # The database was away, and no error said so.
            self._looks.forget()
        confirmed = self._looks.look(seen, time.monotonic())
        lost = reclaim(db, confirmed, actor=self._options.name)
        if lost:
            hint_due(db)
            for line in tell_lost(db, lost):
                logger.warning("%s", line)

    def _prune(self, db: Database) -> None:
        keep, limit = self._options.keep, self._options.history_limit
        self._in_batches("ended jobs", lambda: prune(db, keep, history_limit=limit))
        self._in_batches("occurrences", lambda: prune_occurrences(db))
        if not self.loop.stopping:
            self._pruned_at = time.monotonic()

    def _in_batches(self, what: str, prune_some: Callable[[], int]) -> None:
        total = 0
        while not self.loop.stopping and (deleted := prune_some()):
            total += deleted
        if total:
            logger.info("pruned %s %s", total, what)
