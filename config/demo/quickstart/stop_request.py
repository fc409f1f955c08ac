"""Ctrl-C, SIGTERM and SIGHUP as a request that the main thread reads, from the first moment on."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_LOOK_EVERY = 0.1


class StopRequest:
    """What signals have asked for so far. The handler takes no lock: it runs in the middle of anything."""

    def __init__(self) -> None:
        self.signals: list[signal.Signals] = []

    def asked(self) -> bool:
        return bool(self.signals)

    def urgent(self) -> bool:
        """Asked more than once."""
        return len(self.signals) > 1

    @property
    def exit_code(self) -> int:
        """As shells count a program that a signal ended."""
        return 128 + self.signals[0] if self.signals else 0

    def wait(self, seconds: float) -> bool:
        """Whether it was asked within this time."""
        until = time.monotonic() + seconds
        while not self.asked() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_EVERY))
        return self.asked()

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        self.signals.append(signal.Signals(number))


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Only the main thread can hear signals; elsewhere nothing is ever asked."""
    request = StopRequest()
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants us to outlive the terminal
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, request.receive) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
