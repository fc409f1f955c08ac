"""Say when a process that does half of the work is alone."""

from __future__ import annotations

import logging

from jobs.store.database import Database
from jobs.store.workers import live_roles

logger = logging.getLogger(__name__)

MISSING = {
    "scheduler": ("worker", "no live worker runs what becomes due: start one with runscheduler --role worker"),
    "worker": (
        "scheduler",
        "no live scheduler promotes what becomes due and takes back what dead workers held: "
        "start one with runscheduler --role scheduler",
    ),
}


class OtherRole:
    """Warns once for each time that the other role is missing."""

    def __init__(self, role: str, *, silent_seconds: float) -> None:
        self._role = role
        self._silent_seconds = silent_seconds
        self._warned = False

    def look(self, db: Database) -> None:
        if self._role not in MISSING:
            return
        other, warning = MISSING[self._role]
        alone = not live_roles(db, within_seconds=self._silent_seconds) & {"both", other}
        if alone and not self._warned:
            logger.warning("%s", warning)
        self._warned = alone
