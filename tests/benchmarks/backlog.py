"""The same drain beside 200,000 ready jobs that come later, and 200,000 that are not due yet."""

from __future__ import annotations

from tests.benchmarks.drain import drain_ours
from tests.benchmarks.figure import Figure, beside
from tests.benchmarks.ground import Ground

ROWS = 200_000
# Ready: in the same queue and execution, behind the measured ones. Future: due tomorrow, a second apart.
READY = "'pending', now() - interval '1 hour', -50, 50.0"
FUTURE = "'scheduled', now() + interval '1 day' + n * interval '1 second', 0, 0.0"


def measure(ground: Ground) -> list[Figure]:
    alone, crowded = [], []
    for _ in range(ground.rounds):
        alone.append(drain_ours(ground))
        crowded.append(drain_ours(ground, beside_it=lambda: crowd(ground)))
    name = "drain beside 200,000 ready and 200,000 future jobs"
    return [
        beside(name, [one[0] for one in crowded], [one[0] for one in alone], "jobs/s", "empty tables", at_least=0.9),
        beside(f"{name}, server CPU", [one[2] for one in crowded], [one[2] for one in alone], "us/job", "empty tables"),
    ]


def crowd(ground: Ground) -> None:
    with ground.connect() as connection:
        for columns in (READY, FUTURE):
            connection.execute(
                f"""
                WITH job AS (
                    INSERT INTO jobs_job (task, queue, execution, status, run_at, priority, rank)
                    SELECT 'tests.benchmarks.tasks.noop', 'default', 'thread', {columns}
                    FROM generate_series(1, {ROWS}) AS n RETURNING id
                )
                INSERT INTO jobs_payload (job_id, arguments)
                SELECT id, '{{"args": [0], "kwargs": {{}}}}'::jsonb FROM job
                """
            )
