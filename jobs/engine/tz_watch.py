"""Say when processes disagree about time zones: they would fire one schedule at two instants."""

from __future__ import annotations

import logging
import time

from jobs.domain.recurrence.tz_data import zone_digest
from jobs.domain.recurrence.zone import zone_names
from jobs.engine.options import EngineOptions
from jobs.store.database import Database
from jobs.store.workers import others_with_tz_data, zones_in_use

logger = logging.getLogger(__name__)

LOOK_EVERY = 60.0


class TzWatch:
    """Tells the others, on this worker's row, what this process believes, and warns once for each that differs."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._looked_at = float("-inf")
        self._warned: set[str] = set()

    def look(self, db: Database) -> None:
        """About once a minute; the first look at a zone takes a millisecond."""
        if time.monotonic() < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = time.monotonic()
        digests = {zone: zone_digest(zone) for zone in zones_in_use(db) if zone in zone_names()}
        if not digests:
            return
        differing = others_with_tz_data(db, self._options.worker_id, digests, within_seconds=2 * self._options.lease)
        for name in sorted(differing.keys() - self._warned):
            logger.warning(
                "worker %s has other time zone data for %s than this process: schedules may fire twice, or at two "
                "times. Install the same tzdata everywhere, and set PYTHONTZPATH to an empty string",
                name,
                ", ".join(differing[name]),
            )
        self._warned = set(differing)
