"""Answer small questions about what is left to do, each from the head of a partial index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.domain.execution import Execution
from jobs.store.database import Database


@dataclass(frozen=True, slots=True)
class Able:
    """What one process can run."""

    queues: Sequence[str]
    executions: Collection[Execution]
    """Those it has slots for."""
    unknown_tasks: Collection[str] = ()
    """Those it has found that it does not know."""


def any_pending(queues: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The condition that a job in these queues is pending, with its parameters.

    One ordered look at the ready heap per queue. Asked with EXISTS over all queues, PostgreSQL takes the table to be
    full of pending rows, and reads it from its oldest end until it meets one.
    """
    looks = [
        f"(SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue = %(queue{number})s"
        " ORDER BY execution, rank, run_at, id LIMIT 1) IS NOT NULL"
        for number in range(len(queues))
    ]
    return f"({' OR '.join(looks) or 'false'})", {f"queue{number}": queue for number, queue in enumerate(queues)}


def anything_due(db: Database, able: Able) -> bool:
    """Whether a job in these queues runs here or elsewhere, is due though not yet promoted, or is pending and can be
    run by this process: what only others can run is not waited for."""
    unknown = f"AND NOT (task {db.members('unknown')})" if able.unknown_tasks else ""
    looks = [
        f"(SELECT 1 FROM jobs_job WHERE status = 'pending' AND queue = %(queue{number})s"
        f" AND execution = '{execution}' {unknown} ORDER BY rank, run_at, id LIMIT 1) IS NOT NULL"
        for number in range(len(able.queues))
        for execution in able.executions
    ]
    parameters: dict[str, Any] = {}
    if looks:
        parameters = {f"queue{number}": queue for number, queue in enumerate(able.queues)}
    if looks and unknown:
        parameters["unknown"] = sorted(able.unknown_tasks)
    pending = f"({' OR '.join(looks) or 'false'})"
    return _anything(db, able.queues, f"AND run_at <= {db.now}", pending, **parameters)


def anything_unfinished(db: Database, queues: Sequence[str]) -> bool:
    """Whether a job in these queues runs, or waits for its time. What is blocked waits for one that does."""
    pending, parameters = any_pending(queues)
    return _anything(db, queues, "", pending, **parameters)


def _anything(db: Database, queues: Sequence[str], of_waiting: str, pending: str, **parameters: Any) -> bool:
    served = f"queue {db.members('queues')}"
    rows = db.rows(
        f"""
        SELECT {pending}
            OR (SELECT 1 FROM jobs_job WHERE status = 'running' AND {served} ORDER BY id LIMIT 1) IS NOT NULL
            OR (SELECT 1 FROM jobs_job WHERE status IN ('scheduled', 'retry_wait') AND {served} {of_waiting}
                ORDER BY run_at LIMIT 1) IS NOT NULL
        """,
        queues=list(queues),
        **parameters,
    )
    return bool(rows[0][0])


def left_behind(db: Database, able: Able) -> tuple[dict[Execution, int], dict[str, int]]:
    """How many pending jobs of these queues this process cannot run: by the execution that it has no slots for, and
    of the rest by the task that it does not know."""
    rows = db.rows(
        f"""
        SELECT execution, task, count(*) FROM jobs_job WHERE status = 'pending' AND queue {db.members("queues")}
        GROUP BY execution, task ORDER BY execution, task
        """,
        queues=list(able.queues),
    )
    no_slots: Counter[Execution] = Counter()
    unknown: Counter[str] = Counter()
    for execution, task, count in rows:
        if Execution(execution) not in able.executions:
            no_slots[Execution(execution)] += count
        elif task in able.unknown_tasks:
            unknown[task] += count
    return dict(no_slots), dict(unknown)


def orphans(db: Database) -> int:
    """Running jobs without an open attempt: always 0, unless the promises are broken."""
    rows = db.rows(
        """
        SELECT count(*) FROM jobs_job WHERE status = 'running' AND NOT EXISTS (
            SELECT 1 FROM jobs_attempt WHERE job_id = jobs_job.id AND outcome = 'running'
        )
        """
    )
    return int(rows[0][0])
