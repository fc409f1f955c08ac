"""Fire callbacks at monotonic instants: timeouts and the ends of graces."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

Callback = Callable[[], None]


class Timekeeper:
    """One thread over one heap. Callbacks must be quick; one that raises is logged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, list[Callback | None]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        if self._thread is None:
            self._stopping = False
            self._thread = threading.Thread(target=self._run, name="jobs-timekeeper", daemon=True)
            self._thread.start()

    def stop(self, deadline: float) -> None:
        """Pending callbacks are dropped. Safe twice, and unstarted."""
        with self._changed:
            self._stopping = True
            self._heap.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - self._clock()))
            self._thread = None

    def after(self, seconds: float, callback: Callback) -> Callback:
        """Call `callback` once, `seconds` from now. Returns a function that forgets it."""
        entry: list[Callback | None] = [callback]
        with self._changed:
            item = (self._clock() + seconds, next(self._order), entry)
            heapq.heappush(self._heap, item)
            if self._heap[0] is item:
                self._changed.notify()

        def forget() -> None:
            # The callback must go at once: it holds the run. The empty entry leaves the heap when its time comes.
            entry[0] = None

        return forget

    def _run(self) -> None:
        while (callback := self._next()) is not None:
            try:
                callback()
            except BaseException:  # a retry policy that calls sys.exit() must not end every other job's timeout
                logger.exception("a timer failed")

    def _next(self) -> Callback | None:
        with self._changed:
            while not self._stopping:
                if not self._heap:
                    self._changed.wait()
                    continue
                wait = self._heap[0][0] - self._clock()
                if wait > 0 and self._heap[0][2][0] is not None:
                    self._changed.wait(min(wait, threading.TIMEOUT_MAX))
                    continue
                callback = heapq.heappop(self._heap)[2][0]
                if callback is not None:
                    return callback
        return None
