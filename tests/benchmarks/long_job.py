"""A long job must keep no short one waiting: eight slots, another process idle, 1,000 short jobs behind a long one."""

from __future__ import annotations

from collections import defaultdict

from tests.benchmarks.actor import actors
from tests.benchmarks.figure import Figure
from tests.benchmarks.ground import Ground, wait_for
from tests.benchmarks.stamps import Stamps

SHORT_JOBS, SHORT_SECONDS, LONG_SECONDS = 1000, 0.02, 30.0
SLOTS = 8


def measure(ground: Ground) -> list[Figure]:
    worst = max(_round(ground) for _ in range(ground.rounds))
    note = f"{SHORT_JOBS} of {SHORT_SECONDS * 1000:g} ms behind one of {LONG_SECONDS:g} s; worst of {ground.rounds}"
    return [Figure("longest time a slot was free while a job waited", worst, "ms", at_most=250, note=note)]


def _round(ground: Ground) -> float:
    """Milliseconds. Each slot counts by itself: from its last end, or the commit, to its next start or to the last
    start anywhere."""
    ground.empty()
    stamps = Stamps(size=SHORT_JOBS + 1)
    try:
        with actors(3, ground.url) as (client, *workers):
            for worker in workers:
                worker.call("open_stamps", stamps.name)
                worker.call("start_scheduler", {})
            wait_for(lambda: _asleep(ground) == len(workers), 30)
            committed_at = client.call("enqueue_naps", SHORT_JOBS, SHORT_SECONDS, LONG_SECONDS)
            wait_for(lambda: all(stamps.read(number)[1] for number in range(1, SHORT_JOBS + 1)), 120)
            runs = [stamps.read(number) for number in range(SHORT_JOBS + 1)]
    finally:
        stamps.close()
    return 1000 * max(_gaps(runs, committed_at, slots=SLOTS * len(workers)))


def _gaps(runs: list[tuple[float, float, int]], committed_at: float, *, slots: int) -> list[float]:
    last_start = max(start for start, _, _ in runs)
    by_slot: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for start, end, slot in runs:
        by_slot[slot].append((start, end or float("inf")))
    # A slot that had nothing at all was free all the time.
    gaps = [last_start - committed_at] if len(by_slot) < slots else []
    for own in by_slot.values():
        free_at = committed_at
        for start, end in sorted(own):
            gaps.append(start - free_at)
            free_at = end
        gaps.append(last_start - free_at)
    return gaps


def _asleep(ground: Ground) -> int:
    return int(ground.rows("SELECT count(*) FROM jobs_worker WHERE asleep")[0][0])
