"""One line on a terminal that tells what a scheduler does right now, with whatever is printed passing above it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from jobs.domain.move import Move
from jobs.domain.status import BADLY_ENDED, Status
from jobs.engine.scheduler import Scheduler

EVERY = 0.5
CLEAR = "\r\x1b[K"


class StatusLine:
    """Shows nothing, and costs nothing, where there is no terminal."""

    def __init__(self, scheduler: Scheduler, output: Any) -> None:
        self._scheduler = scheduler
        self._output = output
        self._terminal = output.isatty()
        self._lock = threading.RLock()
        self._text = ""
        self._inside_a_line = False
        """Somebody printed a line without its end: it is not written over."""
        self._shown_at = float("-inf")
        self._done = self._failed = self._retried = 0
        self._streams: list[tuple[Any, Any]] = []
        if self._terminal:
            scheduler.add_listener(self._count)

    def __enter__(self) -> StatusLine:
        if self._terminal:
            for handler in _terminal_handlers():
                self._streams.append((handler, handler.stream))
                handler.setStream(_Above(handler.stream, self))
            # What jobs print, and tracebacks of threads.
            self._standard = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = (_Above(one, self) if one.isatty() else one for one in self._standard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._terminal:
            return
        sys.stdout, sys.stderr = self._standard
        for handler, stream in self._streams:
            handler.setStream(stream)
        self._draw("")

    def show(self) -> None:
        """What runs now, and what became of the rest."""
        if self._is_time():
            self._draw(
                f"running {self._scheduler.in_flight.unfinished()}  completed {self._done}  "
                f"failed {self._failed}  retrying {self._retried}  (Ctrl-C stops)"
            )

    def show_instead(self, text: str) -> None:
        if self._terminal and text != self._text:
            self._draw(text)

    def write_above(self, stream: Any, text: str) -> None:
        with self._lock:
            if self._text and not self._inside_a_line:
                self._write(CLEAR)
            stream.write(text)
            stream.flush()
            self._inside_a_line = not text.endswith("\n") if text else self._inside_a_line
            self._draw(self._text)

    def _is_time(self) -> bool:
        now = time.monotonic()
        if not self._terminal or now - self._shown_at < EVERY:
            return False
        self._shown_at = now
        return True

    def _draw(self, text: str) -> None:
        with self._lock:
            self._text = text
            if not self._inside_a_line:
                # The cursor goes back to the start: a child process, which does not know of this line, writes over it.
                self._write(f"{CLEAR}{text[: self._columns() - 1]}\r" if text else CLEAR)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._output.fileno()).columns or 80
        except OSError:
            return 80

    def _write(self, text: str) -> None:
        try:
            self._output.write(text, str, ending="")
            self._output.flush()
        except OSError:
            self._terminal = False  # it was closed, and we live on

    def _count(self, move: Move) -> None:
        if move.new is Status.COMPLETED:
            self._done += 1
        elif move.new is Status.RETRY_WAIT:
            self._retried += 1
        elif move.new in BADLY_ENDED and move.old is Status.RUNNING:
            self._failed += 1


class _Above:
    """A stream to the terminal that makes room for what is written."""

    def __init__(self, stream: Any, line: StatusLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.write_above(self._stream, text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _terminal_handlers() -> Iterator[logging.StreamHandler[Any]]:
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    seen = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    for handler in seen:
        if isinstance(handler, logging.StreamHandler) and getattr(handler.stream, "isatty", bool)():
            yield handler
