"""Claim due jobs: lock the heads of the ready heaps, move exactly those, open their attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.models.guard import legal_from
from jobs.store.database import Database, PostgreSQL, Rows
from jobs.store.pick import ORDER, UNBOUNDED, Lane, Place, Room, taken_sql
from jobs.store.report import report

_READY = legal_from(Status.PENDING, to=Status.RUNNING)

_HOT = (
    "id, task, queue, execution, attempts, failures, losses, snoozes, max_retries, max_lost, timeout_seconds, "
    "at_most_once, store_result, expires_at, started_at, unknown_since, scheduled_for, rank, run_at"
)
"""Read when the row is moved: `attempts` is the new attempt's number then."""
_ATTEMPT = "job_id, number, worker_id, worker_name, outcome, claimed_at, lease_until"
_COLD = "arguments, retry_base_seconds, retry_max_seconds, retry_jitter"
# A row that somebody made without `enqueue` fails alone, at its unreadable arguments, and stops no claim.
_NO_PAYLOAD = (None, 1.0, 300.0, True)

_EXECUTIONS: dict[str, Execution] = {execution.value: execution for execution in Execution}

Marks = dict[tuple[str, Execution], Place]
"""Per queue and execution: the place of the last job that was claimed there."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The claiming worker: its random id fences, its name is a label."""

    id: UUID
    name: str


def claim(
    db: Database,
    owner: Owner,
    lanes: Sequence[Lane],
    *,
    limits: Mapping[Execution, tuple[int, int]],
    lease_seconds: float,
    at_most: int | None = None,
    queue_room: Mapping[str, int] | None = None,
    unknown_tasks: Collection[str] = (),
    only_best: bool = False,
    marks: Marks | None = None,
) -> list[Claim]:
    """At most `limits[execution]` = (free, ahead) jobs per execution, in the order of `lanes`, then of the ready heap.

    `at_most` bounds them all, `queue_room` a queue over all its executions. Lanes come least recently served first;
    within a lane the order is rank, due instant, id. Rows that others hold are skipped. The attempts are inserted in
    the same transaction; job code never runs in it. `unknown_tasks` are names this process handed back a moment ago.
    `only_best` takes the one job that comes first over all lanes, whatever its execution. In `marks` it leaves where
    it ended.
    """
    room = Room(limits, UNBOUNDED if at_most is None else at_most, queue_room, only_best)
    taken, parameters = taken_sql(db, lanes, room, unknown_tasks)
    if not taken:
        return []
    parameters |= {"worker_id": owner.id, "worker_name": owner.name, "lease": lease_seconds}
    in_steps = not isinstance(db, PostgreSQL)
    rows = _in_steps(db, taken, parameters) if in_steps else _at_once(db, taken, parameters)
    instants = {text: instant for text in {row[20] for row in rows} if (instant := db.read_instant(text)) is not None}
    claims = [_claim(db, row, instants[row[20]]) for row in rows]
    report(
        db,
        lambda: [
            Move(one.job_id, one.task, Status.PENDING, Status.RUNNING, one.number, one.claimed_at, owner.name)
            for one in claims
        ],
    )
    if marks is not None:
        marks |= _last_places(db, rows)
    return claims


def _move(db: Database) -> str:
    return f"""
        UPDATE jobs_job SET status = 'running', attempts = jobs_job.attempts + 1, status_changed_at = {db.now},
               unique_slot = CASE WHEN jobs_job.unique_until_started THEN NULL ELSE jobs_job.unique_slot END
    """


def _attempt(db: Database, ids: str, now: str) -> str:
    return f"""
        SELECT {ids}, attempts, %(worker_id)s, %(worker_name)s, 'running', {now}, {db.later("%(lease)s")}
    """


def _at_once(db: Database, taken: str, parameters: Mapping[str, Any]) -> Rows:
    """One round trip. It may be one statement because nothing is counted under its locks.

    Attempts get their ids beforehand, so that no expression is joined to another one: the planner takes them for
    single rows, and would compare each with each. The status stands in a form that no partial index answers, so
    that nobody reads one that is full of dead entries. Only the last expression is wide: each keeps a copy of its
    rows. Instants come as text: most of them are never read.
    """
    return db.rows(
        f"""
        WITH {taken}, named AS MATERIALIZED (
            SELECT lane, id, nextval((SELECT pg_get_serial_sequence('jobs_attempt', 'id')::regclass)) AS attempt_id,
                   {db.now} AS claimed_at
            FROM taken
        ), moved AS (
            {_move(db)}
            FROM named WHERE jobs_job.id = named.id AND {db.not_by_index(f"jobs_job.status IN {_READY}")}
            RETURNING {_of("jobs_job", _HOT)}, lane, attempt_id, claimed_at
        ), opened AS (
            INSERT INTO jobs_attempt (id, {_ATTEMPT}) {_attempt(db, "attempt_id, id", "claimed_at")} FROM moved
        )
        SELECT {_of("moved", _HOT)}::text, attempt_id, claimed_at::text, job_id, {_COLD}
        FROM moved LEFT JOIN jobs_payload ON job_id = moved.id
        ORDER BY lane, rank, run_at, moved.id
        """,
        **parameters,
    )


def _in_steps(db: Database, taken: str, parameters: Mapping[str, Any]) -> Rows:
    with db.transaction():
        ids = [row[0] for row in db.rows(f"WITH {taken} SELECT id FROM taken ORDER BY {ORDER}", **parameters)]
        if not ids:
            return []
        moved = db.rows(f"{_move(db)} WHERE id {db.members('ids')} AND status IN {_READY} RETURNING {_HOT}", ids=ids)
        opened = db.rows(
            f"""
            INSERT INTO jobs_attempt ({_ATTEMPT}) {_attempt(db, "id", db.now)}
            FROM jobs_job WHERE id {db.members("ids")} ORDER BY id RETURNING job_id, id, claimed_at
            """,
            ids=ids,
            **{name: parameters[name] for name in ("worker_id", "worker_name", "lease")},
        )
        cold = db.rows(f"SELECT job_id, {_COLD} FROM jobs_payload WHERE job_id {db.members('ids')}", ids=ids)
    jobs = {row[0]: row for row in moved}
    attempts = {row[0]: row[1:] for row in opened}
    payloads = {row[0]: row for row in cold}
    return [(*jobs[one], *attempts[one], *payloads.get(one, (None,) * 5)) for one in ids]


def _last_places(db: Database, rows: Rows) -> Marks:
    last = {(row[2], Execution(row[3])): row for row in rows}
    return {
        key: (row[17], due_at, row[0]) for key, row in last.items() if (due_at := db.read_instant(row[18])) is not None
    }


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def _claim(db: Database, row: tuple[Any, ...], claimed_at: datetime) -> Claim:
    arguments, base, cap, jitter = _NO_PAYLOAD if row[21] is None else row[22:]
    return Claim(
        attempt_id=row[19],
        job_id=row[0],
        number=row[4],
        task=row[1],
        queue=row[2],
        execution=_EXECUTIONS[row[3]],
        arguments=db.read_json(arguments) or {},
        failures=row[5],
        losses=row[6],
        snoozes=row[7],
        max_retries=row[8],
        max_lost=row[9],
        retry_base_seconds=base,
        retry_max_seconds=cap,
        retry_jitter=bool(jitter),
        timeout_seconds=row[10],
        at_most_once=bool(row[11]),
        store_result=bool(row[12]),
        expires_at=None if row[14] or row[13] is None else db.read_instant(row[13]),
        claimed_at=claimed_at,
        unknown_since=None if row[15] is None else db.read_instant(row[15]),
        scheduled_for=None if row[16] is None else db.read_instant(row[16]),
    )
