"""Instants that bodies leave in shared memory, so that every process is timed by one monotonic clock."""

from __future__ import annotations

import time
from multiprocessing.shared_memory import SharedMemory


class Stamps:
    """Starts, ends and places (which slot) by number; made by one process, opened by name in the others."""

    def __init__(self, name: str = "", size: int = 0) -> None:
        self._owner = not name
        self._memory = SharedMemory(name or None, create=self._owner, size=max(1, size) * 24)
        assert self._memory.buf is not None
        self._view = self._memory.buf.cast("d")
        self.name = self._memory.name

    def start(self, number: int, place: int = 0) -> None:
        self._view[3 * number + 2] = place
        self._view[3 * number] = time.monotonic()

    def end(self, number: int) -> None:
        self._view[3 * number + 1] = time.monotonic()

    def read(self, number: int) -> tuple[float, float, int]:
        """Start, end (0.0: not yet) and place."""
        start, end, place = self._view[3 * number : 3 * number + 3]
        return start, end, int(place)

    def clear(self) -> None:
        for index in range(len(self._view)):
            self._view[index] = 0.0

    def close(self) -> None:
        self._view.release()
        self._memory.close()
        if self._owner:
            self._memory.unlink()
