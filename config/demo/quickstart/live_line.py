"""One line of a terminal that is written over and over, with log lines passing above it."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

PAUSE = 2.0
"""Seconds between two lines where there is no terminal."""


class LiveLine:
    """Where the output is no terminal, a line of its own for each change, at most one in two seconds."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._terminal = out.isatty()
        self._lock = threading.RLock()
        self._shown = ""
        self._printed_at = float("-inf")

    def show(self, text: str) -> None:
        with self._lock:
            if text == self._shown:
                return
            if self._terminal:
                self._shown = text
                self._draw()
            elif self._clock() - self._printed_at >= PAUSE:
                self._shown = text
                self._printed_at = self._clock()
                self._write(f"{text}\n")

    def say(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            if self._terminal and self._shown:
                self._write("\r\x1b[K")
            self._write(f"{text}\n")
            if self._terminal and self._shown:
                self._draw()

    def end(self, text: str = "") -> None:
        """The last state stays on the screen."""
        with self._lock:
            if text and text != self._shown:
                self._printed_at = float("-inf")
                self.show(text)
            if self._terminal and self._shown:
                self._write("\n")
            self._shown = ""

    def _draw(self) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r{self._shown[:width]}\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that was closed, while we stop
            self._out.write(text)
            self._out.flush()


class _Above(logging.Handler):
    def __init__(self, line: LiveLine) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = record.getMessage().splitlines()[0]
            if record.exc_info and record.exc_info[1] is not None:
                # One line: the traceback is in the admin.
                name = type(record.exc_info[1]).__name__
                said += f" ({name})" if name not in said else ""
            at = time.strftime("%H:%M:%S", time.localtime(record.created))
            self._line.say(f"{at} {record.levelname:<7} {said}")
        except Exception:  # noqa: BLE001 - logging's own rule: a handler does not raise
            self.handleError(record)


@contextmanager
def logs_above(line: LiveLine) -> Iterator[None]:
    """Warnings and errors as one line each above the live line, instead of the project's console log."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, [_Above(line)]
    try:
        yield
    finally:
        root.handlers = before
