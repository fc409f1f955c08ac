"""Calls of factories, which are project code and may take long, beside the planner's loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import connections

from jobs.domain.due_schedule import DueSchedule

AT_ONCE = 4
PATIENCE = 60.0
"""Seconds after which a call that does not return counts no more: it holds up its own schedule only."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Call(Generic[Answer]):
    schedule: DueSchedule
    began_at: float
    answer: Answer | None = None


class FactoryCalls(Generic[Answer]):
    """At most one call a schedule, and four in all. An answer is kept until it is taken off: when writing it fails,
    the factory need not be asked again."""

    def __init__(self, *, answered: Callable[[], None]) -> None:
        self._answered = answered
        self._lock = threading.Lock()
        self._calls: dict[int, _Call[Answer]] = {}

    def answer(self, schedule: DueSchedule, ask: Callable[[], Answer]) -> Answer | None:
        """None: not yet; `answered` is called when it may be there. `ask` must not raise, and runs in a thread of its
        own. An answer for the schedule as it was before an edit counts for nothing."""
        with self._lock:
            call = self._calls.get(schedule.id)
            if call is not None and (call.answer is None or call.schedule.row == schedule.row):
                return call.answer
            self._calls.pop(schedule.id, None)
            now = time.monotonic()
            if sum(one.answer is None and now - one.began_at < PATIENCE for one in self._calls.values()) >= AT_ONCE:
                return None
            call = self._calls[schedule.id] = _Call(schedule, now)
        name = f"jobs-factory-{schedule.id}"
        threading.Thread(target=self._call, args=(call, ask), name=name, daemon=True).start()
        return None

    def take_off(self, schedule: DueSchedule) -> None:
        with self._lock:
            self._calls.pop(schedule.id, None)

    def _call(self, call: _Call[Answer], ask: Callable[[], Answer]) -> None:
        try:
            call.answer = ask()
        finally:
            connections.close_all()
            if call.answer is None:
                self.take_off(call.schedule)
            self._answered()
