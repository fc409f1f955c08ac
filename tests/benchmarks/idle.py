"""What a scheduler with nothing to do costs: statements, transactions, processor, memory."""

from __future__ import annotations

import contextlib
import time

import psutil
import psycopg

from tests.benchmarks.figure import Figure
from tests.benchmarks.ground import Ground, cpu_of, wait_for
from tests.support.processes import manage

# BEGIN and COMMIT are statements here, as they are round trips.
COUNTED = """
SELECT (SELECT sum(calls) FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = %(name)s)),
       (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %(name)s)
"""
SETTLE = 15.0  # the server may tell of what was at the start ten seconds late


def measure(ground: Ground) -> list[Figure]:
    ground.empty()
    with manage("runscheduler", database_url=ground.url) as process:
        wait_for(lambda: bool(ground.rows("SELECT 1 FROM jobs_worker WHERE asleep")), 60)
        time.sleep(SETTLE)
        main = psutil.Process(process.pid)
        cpu, (statements, transactions) = cpu_of(main), _counted(ground)
        time.sleep(ground.seconds)
        after_statements, after_transactions = _counted(ground)
        cpu = cpu_of(main) - cpu
        memory = main.memory_info().rss / 1e6
        children = main.children(recursive=True)
        proportional = sum(one.memory_full_info().pss for one in (main, *children)) / 1e6
    note = f"over {ground.seconds:g} s, BEGIN and COMMIT included"
    return [
        Figure("idle: statements", (after_statements - statements) / ground.seconds, "/s", at_most=1, note=note),
        Figure("idle: transactions", (after_transactions - transactions) / ground.seconds, "/s"),
        Figure("idle: CPU", cpu / ground.seconds * 100, "%"),
        Figure("idle: resident memory", memory, "MB", at_most=90, note="the main process"),
        Figure("idle: memory of all", proportional, "MB", note=f"proportional, with {len(children)} child processes"),
    ]


def _counted(ground: Ground) -> tuple[float, float]:
    """Statements and transactions of this database so far, asked from another one, which is not counted."""
    with psycopg.connect(ground.url, dbname="postgres", autocommit=True) as connection:
        name = ground.url.rsplit("/", 1)[1]
        with contextlib.suppress(psycopg.Error):
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        row = connection.execute(COUNTED, {"name": name}).fetchone()
        assert row is not None
        return float(row[0] or 0), float(row[1])
