"""SQLite: drain and latency, beside huey on SQLite where that is installed."""

from __future__ import annotations

import importlib.util
import statistics
from itertools import count

from tests.benchmarks.actor import actors
from tests.benchmarks.drain import TIMEOUT
from tests.benchmarks.figure import Figure, percentile
from tests.benchmarks.ground import Ground, migrate
from tests.benchmarks.latency import latencies

PEER = "tests.benchmarks.huey_peer"
_numbers = count()


def measure(ground: Ground) -> list[Figure]:
    with_peer = importlib.util.find_spec("huey") is not None
    ours, theirs = [], []
    for _ in range(ground.rounds):
        ours.append(_drain(ground))
        theirs += [_drain_huey(ground)] if with_peer else []
    waits = latencies(ground, _fresh(ground))
    huey = _latencies_huey(ground) if with_peer else []
    peer = "huey on SQLite" if with_peer else ""
    note = "" if with_peer else "huey is not installed"
    return [
        Figure("SQLite: drain", statistics.median(ours), "jobs/s", _median(theirs), peer, note=note),
        Figure("SQLite: enqueue to start, median", statistics.median(waits), "ms", _median(huey), peer, note=note),
        Figure(
            "SQLite: enqueue to start, p99", percentile(waits, 99), "ms", percentile(huey, 99) if huey else None, peer
        ),
    ]


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _fresh(ground: Ground) -> str:
    url = f"sqlite:///{ground.directory}/{next(_numbers)}.sqlite3"
    migrate(url)
    return url


def _drain(ground: Ground) -> float:
    with actors(1, _fresh(ground)) as (worker,):
        worker.call("enqueue_many", ground.jobs)
        return ground.jobs / float(worker.call("drain_here", TIMEOUT))


def _drain_huey(ground: Ground) -> float:
    with actors(1, f"{ground.directory}/{next(_numbers)}.huey", PEER) as (worker,):
        return ground.jobs / float(worker.call("drain", ground.jobs, TIMEOUT))


def _latencies_huey(ground: Ground) -> list[float]:
    with actors(2, f"{ground.directory}/{next(_numbers)}.huey", PEER) as (client, worker):
        worker.call("start")
        called = client.call("submit", 100, 0.03)
        began = worker.call("began", 100, 30.0)
        return [1000 * (start - at) for start, at in zip(began, called, strict=True)]
