"""A request to stop one run: who fired first decides why the run ended."""

from __future__ import annotations

import enum
import threading


class StopReason(str, enum.Enum):
    TIMEOUT = "timeout"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    LEASE_LOST = "lease_lost"

    __str__ = str.__str__


class StopSignal:
    """Set once, from any thread, and read from any thread.

    The exception's type cannot say why a run ended: since Python 3.11 a job's own socket timeout is the
    builtin TimeoutError, and its own CancelledError is asyncio's. So the runner asks this signal.
    """

    __slots__ = ("_lock", "body_over", "reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reason: StopReason | None = None
        self.body_over = False
        """The body has returned or raised: a request that comes now must not spoil how it ended."""

    def fire(self, reason: StopReason) -> bool:
        """Whether this call was the first. Losing the lease overrides any other reason."""
        with self._lock:
            if self.reason is None or reason is StopReason.LEASE_LOST:
                self.reason = reason
                return True
            return False
