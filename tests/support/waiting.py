"""Waiting, with a bound, for facts that no event announces: rows that other processes write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(fact: Callable[[], Value], *, timeout: float = 30, what: str = "") -> Value:
    """The first true value of `fact()`; AssertionError when there is none within `timeout` seconds."""
    give_up_at = time.monotonic() + timeout
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not true within {timeout} s: {what or fact}; last value: {value!r}")
        time.sleep(0.02)


def pass_time(seconds: float) -> None:
    """Let a lease or an outage take its time: for faults that are a length of time, and for nothing else."""
    threading.Event().wait(seconds)
