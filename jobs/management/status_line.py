"""One line on a terminal that tells what a scheduler does right now."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from jobs.domain.move import Move
from jobs.domain.status import BADLY_ENDED, Status
from jobs.engine.scheduler import Scheduler

EVERY = 0.5


class StatusLine:
    """Shows nothing, and costs nothing, where there is no terminal."""

    def __init__(self, scheduler: Scheduler, output: Any) -> None:
        self._scheduler = scheduler
        self._output = output
        self._terminal = output.isatty()
        self._shown_at = float("-inf")
        self._done = self._failed = self._retried = 0
        if self._terminal:
            scheduler.add_listener(self._count)

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._terminal:
            self._output.write("\r\x1b[K", ending="")

    def show(self) -> None:
        if self._terminal and time.monotonic() - self._shown_at >= EVERY:
            self._shown_at = time.monotonic()
            line = (
                f"running {self._scheduler.in_flight.unfinished()}  completed {self._done}  "
                f"failed {self._failed}  retrying {self._retried}  (Ctrl-C stops)"
            )
            self._output.write(f"\r\x1b[K{line}", ending="")
            self._output.flush()

    def _count(self, move: Move) -> None:
        if move.new is Status.COMPLETED:
            self._done += 1
        elif move.new is Status.RETRY_WAIT:
            self._retried += 1
        elif move.new in BADLY_ENDED and move.old is Status.RUNNING:
            self._failed += 1
