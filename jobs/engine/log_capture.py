"""Keep the log lines that a running job emits, bounded, with its attempt."""

from __future__ import annotations

import logging
import time
from collections import deque
from contextvars import ContextVar

from jobs.domain.outcome import LogLine
from jobs.domain.text import class_path, clean_text, short_class, shown

HEAD_LINES, TAIL_LINES = 100, 100
LINE_CHARACTERS = 2000
# Our own bookkeeping and Django's query log are not the task's words.
_NOT_THE_TASKS = ("jobs.engine", "jobs.store", "django.db.backends", "asyncio")


class LogBuffer:
    """The first and the last lines of one attempt; what lies between is counted."""

    __slots__ = ("_began", "_head", "_seen", "_tail")

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._head: list[LogLine] = []
        self._tail: deque[LogLine] | None = None
        """Made when it is needed: most jobs say little, and an empty deque takes half of this buffer's time."""
        self._seen = 0

    def add(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception as error:  # noqa: BLE001 - arguments that do not fit the format are the job's mistake
            message = f"{shown(record.msg)} (not formatted: {short_class(class_path(type(error)))})"
        line = LogLine(
            at_seconds=time.monotonic() - self._began,
            level=clean_text(record.levelname, 20),
            logger=clean_text(record.name, 200),
            message=clean_text(message, LINE_CHARACTERS),
        )
        self._seen += 1
        if len(self._head) < HEAD_LINES:
            self._head.append(line)
            return
        if self._tail is None:
            self._tail = deque(maxlen=TAIL_LINES)
        self._tail.append(line)

    def lines(self) -> tuple[LogLine, ...]:
        if self._tail is None:
            return tuple(self._head)
        dropped = self._seen - len(self._head) - len(self._tail)
        if not dropped:
            return (*self._head, *self._tail)
        gap = LogLine(self._tail[0].at_seconds, "INFO", "jobs", f"... {dropped} lines left out ...")
        return (*self._head, gap, *self._tail)


current: ContextVar[LogBuffer | None] = ContextVar("jobs_log_buffer", default=None)


class _Capture(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        buffer = current.get()
        if buffer is not None and not record.name.startswith(_NOT_THE_TASKS):
            buffer.add(record)
        # Python prints warnings that no handler takes; this one, which only keeps them, must not silence them.
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and not _is_handled_elsewhere(record.name):
            last.handle(record)


def _is_handled_elsewhere(name: str) -> bool:
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(handler is not _capture for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


_capture = _Capture()


def install() -> None:
    """Listen on the root logger. Safe twice."""
    root = logging.getLogger()
    if _capture not in root.handlers:
        root.addHandler(_capture)
    task_logger = logging.getLogger("jobs.task")
    if task_logger.level == logging.NOTSET:
        task_logger.setLevel(logging.INFO)
