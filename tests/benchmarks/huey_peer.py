"""huey on SQLite as its documentation shows it: one file, one consumer thread."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

from tests.benchmarks.ground import wait_for

# By name: it is not among the project's requirements.
huey: Any = importlib.import_module("huey").SqliteHuey(filename=os.environ["DATABASE_URL"], fsync=True)
_began: dict[int, float] = {}


def _mark(number: int) -> None:
    _began[number] = time.monotonic()


mark = huey.task()(_mark)


def drain(count: int, timeout: float) -> float:
    """Seconds."""
    submit(count, 0.0)
    started = time.monotonic()
    start()
    return max(began(count, timeout)) - started


def start() -> None:
    consumer = huey.create_consumer(workers=1, periodic=False, check_worker_health=False)
    consumer.start()


def submit(count: int, pause: float) -> list[float]:
    called = []
    for number in range(count):
        time.sleep(pause)
        called.append(time.monotonic())
        mark(number)
    return called


def began(count: int, timeout: float) -> list[float]:
    wait_for(lambda: len(_began) == count, timeout, pause=0.01)
    return [_began[number] for number in range(count)]
