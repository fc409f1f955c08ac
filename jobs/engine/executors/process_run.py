"""One claim in the hands of the process executor, until its listener has heard how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from jobs.domain.claim import Claim
from jobs.domain.context import Progress
from jobs.domain.outcome import Outcome
from jobs.domain.stop import StopReason, StopSignal
from jobs.engine.executors.board import Board
from jobs.engine.executors.port import Listener


class ProcessRun:
    """Sees to it that the listener hears of a run in order, and of its end once."""

    def __init__(self, claim: Claim, listener: Listener) -> None:
        self.claim = claim
        self.stop = StopSignal()
        self.kill_at: float | None = None
        """Monotonic seconds; set once the run was asked to stop."""
        self.changed = threading.Event()
        """Something happened that the run's slot should look at."""
        self._listener = listener
        self._lock = threading.Lock()
        self._board: Board | None = None
        self._started = False
        self._ended = False

    def may_begin(self, board: Board) -> Outcome | None:
        """None when the child with this board may be given the body now, else how the run ends without it."""
        with self._lock:
            self._board = board
            if self.stop.reason is not None:
                board.ask_to_stop(self.claim.attempt_id, self.stop.reason)
        return self._listener.may_begin(self.claim)

    def started(self) -> None:
        """The body has begun; may be said more than once."""
        with self._lock:
            if self._started or self._ended:
                return
            self._started = True
            self._listener.started(self.claim)  # under the lock, so that the end is not heard before it
            self._signal()  # a request that came while the body was about to begin
        self.changed.set()

    def progressed(self, progress: Progress) -> None:
        with self._lock:
            if self._started and not self._ended:
                self._listener.progressed(self.claim, progress)

    def ask_to_stop(self, reason: StopReason, kill_at: float) -> bool:
        """False when the run has ended. The first reason stays, but for a lost lease."""
        with self._lock:
            if self._ended:
                return False
            if self.stop.fire(reason):
                self.kill_at = kill_at
                if self._board is not None:
                    self._board.ask_to_stop(self.claim.attempt_id, reason)
                self._signal()
        self.changed.set()
        return True

    def kill_by(self, instant: float) -> None:
        """Bring the kill of a run that was asked to stop forward to `instant`."""
        with self._lock:
            self.kill_at = instant if self.kill_at is None else min(self.kill_at, instant)
        self.changed.set()

    @property
    def kill_is_due(self) -> bool:
        return self.kill_at is not None and time.monotonic() >= self.kill_at

    def finish(self, outcome: Outcome) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        self._listener.finished(self.claim, outcome)

    def _signal(self) -> None:
        """Interrupt the body, if it has begun and should stop. The child reads the reason from the board."""
        board = self._board
        if board is not None and self.stop.reason is not None and board.began == self.claim.attempt_id:
            with contextlib.suppress(ProcessLookupError):  # its slot is about to see it
                os.kill(board.began_pid, signal.SIGTERM)
