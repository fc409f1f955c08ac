"""One status change as listeners hear of it, and who wants to hear."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.domain.status import Status

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Move:
    job_id: int
    task: str
    old: Status | None
    """None: the job was just submitted."""
    new: Status
    attempt: int | None
    """The attempt's number, when the move belongs to one."""
    at: datetime
    actor: str
    """Who made it: a worker's name, `system`, or what the caller named."""


Listener = Callable[[Move], None]


class Listeners:
    """Callables of this process that hear of every move it made, after its commit."""

    def __init__(self) -> None:
        self._listeners: tuple[tuple[Listener, Callable[[], bool]], ...] = ()

    def __bool__(self) -> bool:
        """Whether anybody wants to hear: the hot path asks first."""
        return any(wanted() for _, wanted in self._listeners)

    def add(self, listener: Listener, *, wanted: Callable[[], bool] = lambda: True) -> None:
        self._listeners = (*self._listeners, (listener, wanted))

    def remove(self, listener: Listener) -> None:
        # Equality, not identity: a bound method is a new object each time it is asked for.
        self._listeners = tuple(known for known in self._listeners if known[0] != listener)

    def report(self, moves: Sequence[Move]) -> None:
        """Tell every listener of every move; one that raises is logged and changes nothing."""
        for listener, _ in self._listeners:
            for move in moves:
                try:
                    listener(move)
                except Exception:
                    logger.exception(
                        "listener %r failed on job %s (%s to %s)", listener, move.job_id, move.old, move.new
                    )


listeners = Listeners()
