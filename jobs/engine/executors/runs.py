"""The runs that an executor in this process holds, and how one ends when its body does not."""

from __future__ import annotations

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.engine.executors import verdict
from jobs.engine.executors.port import Listener
from jobs.engine.executors.run import Run


class Runs:
    """Safe from any thread: each call is one operation of a dict, or of a run's own lock."""

    def __init__(self, listener: Listener, *, goes_on: str) -> None:
        """`goes_on`: what lingers when a run ends on paper, for people."""
        self._listener = listener
        self._tail = f"; its {goes_on} goes on"
        self._runs: dict[int, Run] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, claim: Claim) -> Run:
        one = self._runs[claim.attempt_id] = Run(claim)
        return one

    def find(self, attempt_id: int) -> Run | None:
        return self._runs.get(attempt_id)

    def all(self) -> list[Run]:
        return list(self._runs.values())

    def drop(self, one: Run) -> None:
        self._runs.pop(one.claim.attempt_id, None)

    def withdraw(self, attempt_id: int) -> bool:
        """Whether it had not begun; then it never will, and nobody is told."""
        one = self._runs.get(attempt_id)
        if one is None or not one.withdraw():
            return False
        self.drop(one)
        return True

    def end_on_paper(self, one: Run) -> None:
        """Its attempt is closed now, though its body cannot be stopped."""
        if one.withdraw():
            self.drop(one)
            self._listener.finished(one.claim, Outcome(Ending.UNSTARTED))
        elif one.end():
            self._listener.finished(one.claim, verdict.stopped(one.claim, one.stop.reason, self._tail), lingers=True)
