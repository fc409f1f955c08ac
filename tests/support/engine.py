"""A real scheduler inside the test process, always stopped at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.scheduler import Scheduler


@contextmanager
def running(**overrides: Any) -> Iterator[Scheduler]:
    """A started scheduler with short intervals; `overrides` as for Scheduler."""
    defaults: dict[str, Any] = {"poll": 0.2, "threads": 4, "async_slots": 10, "processes": 0, "grace": 5.0}
    scheduler = Scheduler(**{**defaults, **overrides})
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop(cancel_running=True)
