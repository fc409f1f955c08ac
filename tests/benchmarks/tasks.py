"""The bodies that are run: as little as can be observed."""

from __future__ import annotations

import threading
import time

from jobs import job
from tests.benchmarks.stamps import Stamps

stamps: list[Stamps] = []
"""Opened by the process that runs the bodies."""


@job
def noop(number: int) -> None:
    pass


@job
def stamp(number: int) -> None:
    stamps[-1].start(number)


@job
def nap(number: int, seconds: float) -> None:
    """Says where: two processes never share a thread's number."""
    stamps[-1].start(number, threading.get_native_id())
    time.sleep(seconds)
    stamps[-1].end(number)
