"""Drains one after the other while another session holds a REPEATABLE READ snapshot, so that nothing is vacuumed."""

from __future__ import annotations

import time

from psycopg import IsolationLevel

from tests.benchmarks.actor import Actor, actors
from tests.benchmarks.drain import TIMEOUT, ended, fill_ours, rate
from tests.benchmarks.figure import Figure, beside
from tests.benchmarks.ground import Ground, wait_for

LAST = 5
"""Drains at the end of the snapshot's time that are compared with as many before it."""


def measure(ground: Ground) -> list[Figure]:
    ground.empty()
    with actors(2, ground.url) as (client, worker):
        before = [_drain(ground, client, worker) for _ in range(LAST)]
        with ground.connect() as pinned:
            pinned.isolation_level = IsolationLevel.REPEATABLE_READ
            with pinned.transaction():
                pinned.execute("SELECT count(*) FROM jobs_job")
                until = time.monotonic() + ground.seconds
                during: list[float] = []
                while time.monotonic() < until or len(during) < LAST:
                    during.append(_drain(ground, client, worker))
    note = f"the last {LAST} of {len(during)} drains, after {ground.seconds:g} s"
    name = "drain under another session's snapshot"
    return [beside(name, during[-LAST:], before, "jobs/s", "without", at_least=0.7, note=note)]


def _drain(ground: Ground, client: Actor, worker: Actor) -> float:
    """A scheduler of its own for each, so that no drain has begun while its jobs are still being stored."""
    first, last = fill_ours(ground, client)
    worker.call("start_scheduler", {})
    wait_for(lambda: ended(ground, first, last), TIMEOUT)
    worker.call("stop_scheduler")
    return rate(ground, first, last)
