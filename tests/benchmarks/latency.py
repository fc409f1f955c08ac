"""From enqueue to the body's start on an idle scheduler, against a bare insert, NOTIFY, LISTEN and claim."""

from __future__ import annotations

import statistics
import time

from tests.benchmarks import bare
from tests.benchmarks.actor import actors
from tests.benchmarks.drain import BARE
from tests.benchmarks.figure import Figure, beside, percentile
from tests.benchmarks.ground import Ground, wait_for
from tests.benchmarks.stamps import Stamps

COUNT = 100
PAUSE = 0.03


def measure(ground: Ground) -> list[Figure]:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ground.rounds):
        floor += _bare(ground)
        ours += latencies(ground)
    worst = [percentile(ours, 99)], [percentile(floor, 99)]
    note = f"{len(ours)} jobs; longest {max(ours):.0f} ms, of the floor {max(floor):.0f} ms"
    return [
        beside("enqueue to start, median", [statistics.median(ours)], floor, "ms", "bare round trip", at_most=2.0),
        beside("enqueue to start, p99", *worst, "ms", "bare round trip", note=note),
    ]


def latencies(ground: Ground, url: str = "") -> list[float]:
    """Milliseconds."""
    if not url:
        ground.empty()
    stamps = Stamps(size=COUNT + 1)
    try:
        with actors(2, url or ground.url) as (client, worker):
            worker.call("open_stamps", stamps.name)
            worker.call("start_scheduler", {})
            client.call("enqueue_each", 1)  # its connection is open, and the scheduler has run something
            time.sleep(1.0)
            called = client.call("enqueue_stamps", COUNT, PAUSE)
            wait_for(lambda: all(stamps.read(number)[0] for number in range(1, COUNT + 1)), 30)
            return [1000 * (stamps.read(number)[0] - at) for number, at in enumerate(called, start=1)]
    finally:
        stamps.close()


def _bare(ground: Ground) -> list[float]:
    ground.empty()
    stamps = Stamps(size=COUNT + 1)
    called = []
    try:
        with actors(1, ground.url, BARE) as (worker,), ground.connect() as connection:
            worker.ask("serve", ground.url, stamps.name, COUNT)
            wait_for(lambda: stamps.read(0)[0] > 0, 30)
            time.sleep(1.0)
            for number in range(1, COUNT + 1):
                time.sleep(PAUSE)
                called.append(time.monotonic())
                bare.submit(connection, number)
            worker.answer()
        return [1000 * (stamps.read(number)[0] - at) for number, at in enumerate(called, start=1)]
    finally:
        stamps.close()
