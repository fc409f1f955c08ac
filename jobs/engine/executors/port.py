"""What an executor tells the engine, and what the engine asks of an executor."""

from __future__ import annotations

from typing import Protocol

from jobs.domain.claim import Claim
from jobs.domain.context import Progress
from jobs.domain.outcome import Outcome
from jobs.domain.stop import StopReason


class Listener(Protocol):
    """Implemented by the engine; may be called from any thread, and never blocks for long."""

    def may_begin(self, claim: Claim) -> Outcome | None:
        """None when the body may begin now, else how the run ends without it; called right before the body."""

    def started(self, claim: Claim) -> None: ...

    def progressed(self, claim: Claim, progress: Progress) -> None: ...

    def finished(self, claim: Claim, outcome: Outcome, *, lingers: bool = False) -> None:
        """Exactly once per submitted claim. `lingers`: the call goes on although its attempt is to be closed."""

    def returned(self, claim: Claim) -> None:
        """A lingering call has returned: its slot is free."""


class Executor(Protocol):
    slots: int

    @property
    def alive(self) -> bool:
        """Whether every thread that should serve it does, between `start` and `stop`."""

    def start(self) -> None: ...

    def submit(self, claim: Claim) -> None:
        """Never blocks. The claim waits inside when it was claimed ahead of a free slot."""

    def withdraw(self, attempt_id: int) -> bool:
        """Whether the claim was still waiting; then its body will not begin, and `finished` is not called."""

    def stop_run(self, attempt_id: int, reason: StopReason) -> bool:
        """Ask one run to stop; False when it is unknown or has ended."""

    def stop(self, deadline: float) -> None:
        """Give up whatever still runs by `deadline` (monotonic seconds). Safe twice, and unstarted."""
