"""Drain no-op thread jobs, against a bare loop that claims and completes in batches."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmarks.actor import Actor, actors
from tests.benchmarks.figure import Figure, beside
from tests.benchmarks.ground import Ground, wait_for

TIMEOUT = 600.0
BARE = "tests.benchmarks.bare"
Measured = tuple[float, float, float]
"""Jobs per second, worker and server CPU microseconds per job."""


def measure(ground: Ground) -> list[Figure]:
    rounds: dict[str, list[Measured]] = {"ours 1": [], "ours 2": [], "bare 1": [], "bare 2": []}
    for _ in range(ground.rounds):
        for processes in (1, 2):
            rounds[f"bare {processes}"].append(drain_bare(ground, processes))
            rounds[f"ours {processes}"].append(drain_ours(ground, processes))
    one, two, bare, two_bare = (list(zip(*measured, strict=True)) for measured in rounds.values())
    return [
        beside("drain, one process", one[0], bare[0], "jobs/s", "bare loop", at_least=0.6),
        beside("drain, two processes", two[0], one[0], "jobs/s", "one process", at_least=1.0),
        beside("drain, two processes", two[0], two_bare[0], "jobs/s", "two bare loops"),
        beside("drain, worker CPU", one[1], bare[1], "us/job", "bare loop"),
        beside("drain, server CPU", one[2], bare[2], "us/job", "bare loop"),
    ]


def drain_ours(ground: Ground, processes: int = 1, *, beside_it: Callable[[], None] = lambda: None) -> Measured:
    """`beside_it` puts what else is to be in the tables."""
    ground.empty()
    with actors(processes, ground.url) as workers:
        beside_it()
        first, last = fill_ours(ground, workers[0])
        cpu, server = sum(worker.cpu for worker in workers), ground.server_cpu()
        for worker in workers:
            worker.ask("start_scheduler", {})
        wait_for(lambda: ended(ground, first, last), TIMEOUT)
        cpu, server = sum(worker.cpu for worker in workers) - cpu, ground.server_cpu() - server
    jobs = last - first + 1
    return rate(ground, first, last), cpu / jobs * 1e6, server / jobs * 1e6


def fill_ours(ground: Ground, client: Actor) -> tuple[int, int]:
    """The first and the last id of a drain's jobs, which come before all others of their queue."""
    client.call("enqueue_many", ground.jobs)
    with ground.connect() as connection:
        ground.settle(connection)
    [(last,)] = ground.rows("SELECT max(id) FROM jobs_job WHERE priority = 0")
    return last - ground.jobs + 1, last


def ended(ground: Ground, first: int, last: int) -> bool:
    """Asked often, so the last one is looked at before all of them are."""
    still_open = "SELECT 1 FROM jobs_job WHERE status IN ('pending', 'running') AND id BETWEEN %s AND %s LIMIT 1"
    return not ground.rows(still_open, last, last) and not ground.rows(still_open, first, last)


def rate(ground: Ground, first: int, last: int) -> float:
    """From the first claim to the last recorded end, by the database's clock."""
    [(seconds,)] = ground.rows(
        """
        SELECT extract(epoch FROM max(ended_at) - min(claimed_at))::float8 FROM jobs_attempt
        WHERE job_id BETWEEN %s AND %s
        """,
        first,
        last,
    )
    return (last - first + 1) / float(seconds)


def drain_bare(ground: Ground, processes: int = 1) -> Measured:
    ground.empty()
    with actors(processes, ground.url, BARE) as workers:
        workers[0].call("fill", ground.url, ground.jobs)
        with ground.connect() as connection:
            ground.settle(connection)
        server = ground.server_cpu()
        for worker in workers:
            worker.ask("drain", ground.url)
        cpu = sum(worker.answer()[0] for worker in workers)
        server = ground.server_cpu() - server
    [(seconds,)] = ground.rows("SELECT extract(epoch FROM max(ended_at) - min(claimed_at))::float8 FROM bare_attempt")
    return ground.jobs / float(seconds), cpu / ground.jobs * 1e6, server / ground.jobs * 1e6
