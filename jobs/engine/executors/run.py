"""One claim inside an executor: begun once, ended once, whoever comes first."""

from __future__ import annotations

import threading

from jobs.domain.claim import Claim
from jobs.domain.stop import StopSignal


class Run:
    """The small state machine of a run: waiting, then withdrawn or begun, then ended."""

    __slots__ = ("_begun", "_ended", "_lock", "_withdrawn", "claim", "stop")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.stop = StopSignal()
        self._lock = threading.Lock()
        self._begun = self._ended = self._withdrawn = False

    @property
    def begun(self) -> bool:
        return self._begun

    def begin(self) -> bool:
        """Whether the caller may run the body: nobody withdrew the claim or asked it to stop before."""
        with self._lock:
            if self._withdrawn:
                return False
            self._begun = True
            return True

    def withdraw(self) -> bool:
        """Whether the run had not begun; then it never will."""
        with self._lock:
            if self._begun or self._withdrawn:
                return False
            self._withdrawn = True
            return True

    def end(self) -> bool:
        """Whether the caller is the one who reports the outcome."""
        with self._lock:
            if self._ended:
                return False
            self._ended = True
            return True
