"""Say when processes disagree about time zones: they would fire one schedule at two instants."""

from __future__ import annotations

import logging
import time

from jobs.domain.recurrence.tz_data import tz_fingerprint
from jobs.engine.options import EngineOptions
from jobs.store.database import Database
from jobs.store.workers import others_with_tz_data

logger = logging.getLogger(__name__)

LOOK_EVERY = 60.0


class TzWatch:
    """Tells the others, on this worker's row, what this process believes, and warns once for each that differs."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._looked_at = float("-inf")
        self._warned: set[str] = set()

    def look(self, db: Database) -> None:
        if time.monotonic() < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = time.monotonic()
        differing = others_with_tz_data(
            db, self._options.worker_id, tz_fingerprint(), within_seconds=2 * self._options.lease
        )
        for name in sorted(differing - self._warned):
            logger.warning(
                "worker %s has other time zone data than this process: schedules may fire twice or at two times. "
                "Install the same tzdata everywhere, and set PYTHONTZPATH to an empty string",
                name,
            )
        self._warned = differing
