"""Submitting, against Django's own way to store the same rows; and eight clients at once."""

from __future__ import annotations

from tests.benchmarks.actor import Actor, actors
from tests.benchmarks.figure import Figure, beside
from tests.benchmarks.ground import Ground

CLIENTS = 8
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
    """The hint looks whether anybody sleeps; then it is sent. No scheduler runs, so that nobody else wants the CPU."""
    rates: dict[str, list[float]] = {"no hint": [], "nobody sleeps": [], "somebody sleeps": []}
    with actors(CLIENTS, ground.url) as hinting, actors(CLIENTS, ground.url) as silent:
        for client in silent:
            client.call("without_hint")
        for warm_up in (True, *[False] * ground.rounds):
            for name, clients in (("no hint", silent), ("nobody sleeps", hinting), ("somebody sleeps", hinting)):
                ground.empty()
                with ground.connect() as connection:
                    connection.execute(MARK, [name == "somebody sleeps"])
                seconds = _all(clients)
                rates[name] += [] if warm_up else [CLIENTS * EACH / seconds]
    return [
        beside(f"{CLIENTS} clients enqueue, {name}", rates[name], rates["no hint"], "jobs/s", "no hint", at_least=0.8)
        for name in ("nobody sleeps", "somebody sleeps")
    ]


def _all(clients: list[Actor]) -> float:
    for client in clients:
        client.ask("enqueue_each", EACH)
    return max(float(client.answer()) for client in clients)
