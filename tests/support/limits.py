"""Tasks that end about when their time is up, and notice when they are started beside themselves."""

from __future__ import annotations

import asyncio
import threading
import time

from jobs import Context, job

_lock = threading.Lock()
_active: set[int] = set()
overlaps: list[int] = []
"""Jobs whose body began while an earlier one of the same job still ran. In this process only."""


class Alone:
    def __init__(self, job_id: int) -> None:
        self._job_id = job_id

    def __enter__(self) -> None:
        with _lock:
            if self._job_id in _active:
                overlaps.append(self._job_id)
            _active.add(self._job_id)

    def __exit__(self, *_: object) -> None:
        with _lock:
            _active.discard(self._job_id)


@job(takes_context=True)
def last(context: Context, seconds: float) -> str:
    with Alone(context.job_id):
        time.sleep(seconds)
    return "in time"


@job(takes_context=True)
async def alast(context: Context, seconds: float) -> str:
    with Alone(context.job_id):
        await asyncio.sleep(seconds)
    return "in time"


@job(execution="process", takes_context=True)
def plast(context: Context, seconds: float) -> str:
    with Alone(context.job_id):
        time.sleep(seconds)
    return "in time"
