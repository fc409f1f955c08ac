"""How far down the ready heaps this process has claimed, and when it looks at them from the start again."""

from __future__ import annotations

import time

from jobs.domain.execution import Execution
from jobs.store.claim import Marks
from jobs.store.pick import Place

FROM_START_EVERY = 1.0
"""At most this many seconds, and `COSTS` times as long as that look takes, claims go on where the last one ended."""
COSTS = 20


class Reach:
    """Under an old snapshot the heads of the heaps fill with dead index entries, and passing over them costs more with
    every job claimed. So claims go on where the last one ended, and look from the start every now and then, after a
    hint and before this process takes the heaps for empty: for what became ready at a better place meanwhile.
    """

    def __init__(self) -> None:
        self.marks: Marks = {}
        self._start_over_at = float("-inf")

    def start_over(self) -> None:
        """Something may be ready that comes before the marks. Safe from any thread."""
        self._start_over_at = float("-inf")

    def above(self, queue: str, execution: Execution) -> Place | None:
        return self.marks.get((queue, execution))

    def begin(self) -> bool:
        """Before a claim: whether it looks from the start."""
        if time.monotonic() >= self._start_over_at:
            self._start_over_at = float("inf")
            self.marks.clear()
        return not self.marks

    def end(self, asked_at: float, *, from_start: bool, short: bool) -> None:
        """After it: `asked_at` is the monotonic instant before it, `short` says that it found less than it had room
        for."""
        now = time.monotonic()
        if from_start:
            self._start_over_at = min(self._start_over_at, now + min(FROM_START_EVERY, COSTS * (now - asked_at)))
        if short:
            self.marks.clear()
