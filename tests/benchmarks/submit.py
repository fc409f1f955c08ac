"""Submitting, against Django's own way to store the same rows; and eight clients at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tests.benchmarks.actor import Actor, actors
from tests.benchmarks.figure import Figure, beside
from tests.benchmarks.ground import Ground

CLIENTS = 8
DUE, BUSY_ROUNDS = "jobs_due", 20  # as in the engine, which cannot be imported before Django is set up
EACH = 500
MARK = """
INSERT INTO jobs_worker (id, queues, slots, asleep) VALUES ('00000000-0000-0000-0000-000000000001', '[]', '{}', %s)
"""


def measure(ground: Ground) -> list[Figure]:
    one: dict[str, list[float]] = {"enqueue": [], "create": [], "many": [], "bulk": []}
    with actors(1, ground.url) as (client,):
        for warm_up in (True, *[False] * ground.rounds):
            ground.empty()
            found = {
                "create": client.call("create_each", EACH) / EACH * 1e6,
                "enqueue": client.call("enqueue_each", EACH) / EACH * 1e6,
                "bulk": client.call("bulk_create", ground.jobs) / ground.jobs * 1e6,
                "many": client.call("enqueue_many", ground.jobs) / ground.jobs * 1e6,
            }
            for name, value in found.items():
                one[name] += [] if warm_up else [value]
    return [
        beside("enqueue", one["enqueue"], one["create"], "us", "two model saves in a transaction", at_most=1.5),
        beside("enqueue_many", one["many"], one["bulk"], "us/job", "two bulk_create", at_most=1.3),
        *_together(ground),
    ]


def _together(ground: Ground) -> list[Figure]:
    """The hint looks whether anybody sleeps; only then it is sent. Instead of a scheduler, which would want the CPU,
    there is its mark: off, on until somebody is woken, or on for good."""
    rates: dict[str, list[float]] = {"no hint": [], "nobody sleeps": [], "one is woken": [], "one sleeps on": []}
    with actors(CLIENTS, ground.url) as hinting, actors(CLIENTS, ground.url) as silent:
        for client in silent:
            client.call("without_hint")
        for warm_up in (True, *[False] * ground.rounds):
            for name in rates:
                ground.empty()
                with ground.connect() as connection:
                    connection.execute(MARK, [name.startswith("one")])
                clients = silent if name == "no hint" else hinting
                with _sleeper(ground) if name == "one is woken" else nullcontext():
                    seconds = _all(clients)
                rates[name] += [] if warm_up else [CLIENTS * EACH / seconds]
    name = f"{CLIENTS} clients enqueue with the hint"
    bars = {"nobody sleeps": 0.8, "one is woken": 0.8, "one sleeps on": None}
    return [
        beside(f"{name}, {case}", rates[case], rates["no hint"], "jobs/s", "without", at_least=bar)
        for case, bar in bars.items()
    ]


@contextmanager
def _sleeper(ground: Ground) -> Iterator[None]:
    """Like a scheduler, which takes its mark off after some busy rounds."""
    with ground.connect() as ear, ground.connect() as hand:
        ear.execute(f"LISTEN {DUE}")

        def wake() -> None:
            for _ in ear.notifies(timeout=60, stop_after=1):
                time.sleep(BUSY_ROUNDS * 0.005)
                hand.execute("UPDATE jobs_worker SET asleep = false")

        thread = threading.Thread(target=wake)
        thread.start()
        yield
        thread.join()


def _all(clients: list[Actor]) -> float:
    for client in clients:
        client.ask("enqueue_each", EACH)
    return max(float(client.answer()) for client in clients)
