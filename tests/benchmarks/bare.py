"""The floor: what a plain psycopg loop does with the same work, without any of the engine's promises."""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg

from tests.benchmarks.stamps import Stamps

Row = tuple[int, int, str, dict[str, Any]]

TABLES = "bare_job, bare_attempt"
DDL = """
CREATE TABLE bare_job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL DEFAULT 'default', task text NOT NULL,
    arguments jsonb NOT NULL, status smallint NOT NULL DEFAULT 0, priority smallint NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(), ended_at timestamptz
);
CREATE INDEX bare_job_ready ON bare_job (queue, priority, run_at, id) WHERE status = 0;
CREATE TABLE bare_attempt (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL REFERENCES bare_job (id) ON DELETE CASCADE, number int NOT NULL, worker text NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz, outcome smallint
);
CREATE INDEX bare_attempt_job ON bare_attempt (job_id);
"""
CLAIM = """
WITH picked AS MATERIALIZED (
    SELECT id FROM bare_job WHERE status = 0 AND queue = 'default' AND run_at <= now()
    ORDER BY priority, run_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE bare_job SET status = 1, attempts = attempts + 1 FROM picked WHERE bare_job.id = picked.id
    RETURNING bare_job.id, task, arguments, attempts
), opened AS (
    INSERT INTO bare_attempt (job_id, number, worker) SELECT id, attempts, %(worker)s FROM claimed RETURNING id, job_id
)
SELECT opened.id, claimed.id, task, arguments FROM claimed JOIN opened ON job_id = claimed.id
"""
COMPLETE = """
WITH closed AS (
    UPDATE bare_attempt SET ended_at = clock_timestamp(), outcome = 1 WHERE id = ANY(%(attempts)s)
)
UPDATE bare_job SET status = 2, ended_at = clock_timestamp() WHERE id = ANY(%(jobs)s)
"""
GROUP = 100


def fill(url: str, jobs: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO bare_job (task, arguments)
            SELECT 'noop', jsonb_build_object('args', jsonb_build_array(n), 'kwargs', '{}'::jsonb)
            FROM generate_series(1, %s) AS n
            """,
            [jobs],
        )


def drain(url: str) -> tuple[float, int]:
    """CPU seconds of this process, and how many jobs it ran."""
    tasks = {"noop": lambda number: None}
    ran = 0
    with psycopg.connect(url, autocommit=True) as connection:
        before = time.process_time()
        while rows := _claim(connection, GROUP):
            for _, _, task, arguments in rows:
                tasks[task](*arguments["args"], **arguments["kwargs"])
            _complete(connection, rows)
            ran += len(rows)
    return time.process_time() - before, ran


def serve(url: str, stamps: str, jobs: int) -> None:
    """LISTEN, then claim and run `jobs` jobs as they come; each body stamps its start."""
    mark = Stamps(stamps)
    ran = 0
    with psycopg.connect(url, autocommit=True) as ear, psycopg.connect(url, autocommit=True) as hand:
        ear.execute("LISTEN bare_due")
        mark.start(0)
        while ran < jobs:
            for _ in ear.notifies(timeout=1, stop_after=1):
                pass
            while rows := _claim(hand, 10):
                for _, _, _, arguments in rows:
                    mark.start(*arguments["args"])
                _complete(hand, rows)
                ran += len(rows)
    mark.close()


def submit(connection: psycopg.Connection[object], number: int) -> None:
    with connection.transaction():
        connection.execute(
            "INSERT INTO bare_job (task, arguments) SELECT 'stamp', jsonb_build_object('args', jsonb_build_array(%s))",
            [number],
        )
        connection.execute("SELECT pg_notify('bare_due', '')")


def _claim(connection: psycopg.Connection[object], limit: int) -> list[Row]:
    cursor = connection.cursor()
    cursor.execute(CLAIM, {"limit": limit, "worker": str(os.getpid())})
    return cursor.fetchall()  # type: ignore[return-value]


def _complete(connection: psycopg.Connection[object], rows: list[Row]) -> None:
    connection.execute(COMPLETE, {"attempts": [row[0] for row in rows], "jobs": [row[1] for row in rows]})
