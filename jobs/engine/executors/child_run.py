"""One body as its child process sees it: its context, its stop signal, its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobs.domain.claim import Claim
from jobs.domain.context import Context, Progress
from jobs.domain.stop import StopSignal
from jobs.engine.executors import message

PROGRESS_INTERVAL = 0.2
"""Seconds between two reports of progress."""


class ChildRun:
    """The body that is running now."""

    def __init__(self, claim: Claim, tell: Callable[[message.Message], None]) -> None:
        self.claim = claim
        self.stop = StopSignal()
        self.signalled = False
        self.interruptible = False
        """Whether the main thread is inside the runner, so that JobCancelled may be raised there."""
        self.context = Context.of(claim, self.stop, self._report)
        self._tell = tell
        self._lock = threading.Lock()
        self._reported_at = 0.0
        self._held_back: Progress | None = None

    def _report(self, progress: Progress) -> None:
        with self._lock:
            self._held_back = progress
            if time.monotonic() - self._reported_at < PROGRESS_INTERVAL:
                return
        self.flush()

    def flush(self) -> None:
        progress = self.take_progress()
        if progress is not None:
            self._reported_at = time.monotonic()
            self._tell(message.Progressed(self.claim.attempt_id, progress))

    def take_progress(self) -> Progress | None:
        """The newest progress that was not told yet."""
        with self._lock:
            progress, self._held_back = self._held_back, None
            return progress
