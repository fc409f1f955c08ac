"""Say once when every slot of an execution is held by a call that does not return, and once when that is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from jobs.domain.execution import Execution

logger = logging.getLogger(__name__)


class StuckSlots:
    """Safe from any thread."""

    def __init__(self, slots: Mapping[Execution, int], lingering: Callable[[Execution], int]) -> None:
        """`lingering`: how many calls of an execution go on although their attempts are closed."""
        self._slots = slots
        self._lingering = lingering
        self._stuck: set[Execution] = set()
        self._lock = threading.Lock()

    def look(self, execution: Execution) -> None:
        """After a call has begun to linger, or has returned."""
        with self._lock:
            slots = self._slots[execution]
            are_stuck = self._lingering(execution) >= slots
            if are_stuck is (execution in self._stuck):
                return
            # Under the lock, so that the two lines never change places.
            if are_stuck:
                self._stuck.add(execution)
                logger.warning(
                    "every %s slot (%s) is held by a call that does not return: %s jobs wait for another process, "
                    "or until one returns; restarting this one ends the calls",
                    execution,
                    slots,
                    execution,
                )
            else:
                self._stuck.discard(execution)
                logger.info("a call has returned: there is a free %s slot again", execution)
