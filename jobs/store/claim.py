"""Claim due jobs: lock the heads of the ready heaps, move exactly those, open their attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.move import Move
from jobs.domain.status import Status
from jobs.models.guard import legal_from
from jobs.store.database import Database, Rows
from jobs.store.report import report

_READY = legal_from(Status.PENDING, to=Status.RUNNING)

_PICKED = (
    "id",
    "task",
    "queue",
    "execution",
    "attempts",
    "failures",
    "losses",
    "snoozes",
    "max_retries",
    "max_lost",
    "timeout_seconds",
    "at_most_once",
    "store_result",
    "unique_until_started",
    "expires_at",
    "started_at",
    "unknown_since",
    "rank",
    "run_at",
)


@dataclass(frozen=True, slots=True)
class Lane:
    """One queue in one execution, and how many of its jobs this process may take now."""

    queue: str
    execution: Execution
    free: int
    ahead: int = 0
    """Beyond the free slots: only jobs that may be claimed ahead."""


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
    limits: dict[Execution, tuple[int, int]],
    lease_seconds: float,
    at_most: int | None = None,
    queue_room: Mapping[str, int] | None = None,
    unknown_tasks: Collection[str] = (),
    only_best: bool = False,
) -> list[Claim]:
    """At most `limits[execution]` = (free, ahead) jobs per execution, in the order of `lanes`, then of the ready heap.

    `at_most` bounds them all, `queue_room` a queue over all its executions. Lanes come least recently served first;
    within a lane the order is rank, due instant, id. Rows that others hold are skipped. The attempts are inserted in
    the same transaction; job code never runs in it. `unknown_tasks` are names this process handed back a moment ago.
    `only_best` takes the one job that comes first over all lanes, whatever its execution.
    """
    with db.transaction():
        taken = _within(_pick(db, lanes, limits, unknown_tasks), lanes, limits, dict(queue_room or {}))[:at_most]
        if only_best:
            taken = sorted(taken, key=lambda row: (row["rank"], row["run_at"], row["id"]))[:1]
        if not taken:
            return []
        ids = sorted(row["id"] for row in taken)
        db.execute(
            f"""
            UPDATE jobs_job SET status = 'running', attempts = attempts + 1, status_changed_at = {db.now},
                   unique_slot = CASE WHEN unique_until_started THEN NULL ELSE unique_slot END
            WHERE id {db.members("ids")} AND status IN {_READY}
            """,
            ids=ids,
        )
        opened = db.rows(
            f"""
            INSERT INTO jobs_attempt (job_id, number, worker_id, worker_name, outcome, claimed_at, lease_until)
            SELECT id, attempts, %(worker_id)s, %(worker_name)s, 'running', {db.now}, {db.later("%(lease)s")}
            FROM jobs_job WHERE id {db.members("ids")}
            RETURNING job_id, id, claimed_at
            """,
            ids=ids,
            worker_id=owner.id,
            worker_name=owner.name,
            lease=lease_seconds,
        )
        payloads = db.rows(
            f"""
            SELECT job_id, arguments, retry_base_seconds, retry_max_seconds, retry_jitter
            FROM jobs_payload WHERE job_id {db.members("ids")}
            """,
            ids=ids,
        )
        claims = _claims(db, taken, opened, payloads)
        report(
            db,
            lambda: [
                Move(one.job_id, one.task, Status.PENDING, Status.RUNNING, one.number, one.claimed_at, owner.name)
                for one in claims
            ],
        )
        return claims


def _pick(
    db: Database, lanes: Sequence[Lane], limits: dict[Execution, tuple[int, int]], unknown_tasks: Collection[str]
) -> list[dict[str, Any]]:
    sql, parameters = pick_sql(db, lanes, limits, unknown_tasks)
    if not sql:
        return []
    rows = db.rows(sql, **parameters)
    # UNION ALL promises no order, so the lanes' own is put back here.
    rows.sort(key=lambda row: (row[0], row[-2], row[-1], row[1]))
    return [dict(zip(("lane", *_PICKED), row, strict=True)) for row in rows]


def pick_sql(
    db: Database, lanes: Sequence[Lane], limits: dict[Execution, tuple[int, int]], unknown_tasks: Collection[str] = ()
) -> tuple[str, dict[str, Any]]:
    """One range scan per lane under one LIMIT per execution, which stops early: what is not taken is not locked.

    `status = 'pending'` in so many words: SQLite uses a partial index only where its own condition is repeated.
    """
    columns = ", ".join(_PICKED)
    known = f"AND NOT (task {db.members('unknown')})" if unknown_tasks else ""
    parameters: dict[str, Any] = {"unknown": sorted(unknown_tasks)} if unknown_tasks else {}
    arms: dict[Execution, list[str]] = {}
    for number, lane in enumerate(lanes):
        if lane.free + lane.ahead <= 0:
            continue
        parameters[f"queue{number}"] = lane.queue
        arms.setdefault(lane.execution, []).append(
            f"""SELECT * FROM (
                SELECT {number} AS lane, {columns} FROM jobs_job
                WHERE status = 'pending' AND queue = %(queue{number})s AND execution = '{lane.execution}'
                  AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > {db.now}) {known}
                ORDER BY rank, run_at, id LIMIT {lane.free + lane.ahead} {db.lock}
            ) AS lane{number}"""
        )
    parts = [
        f"SELECT * FROM ({' UNION ALL '.join(of_one)} LIMIT {sum(limits[execution])}) AS {execution}_lanes"
        for execution, of_one in arms.items()
        if sum(limits[execution]) > 0
    ]
    return " UNION ALL ".join(parts), parameters


def _within(
    picked: list[dict[str, Any]],
    lanes: Sequence[Lane],
    limits: dict[Execution, tuple[int, int]],
    queue_room: dict[str, int],
) -> list[dict[str, Any]]:
    """Beyond the free slots keep only what may be claimed ahead; the rest goes back untouched at the commit."""
    taken: list[dict[str, Any]] = []
    per_lane = dict.fromkeys(range(len(lanes)), 0)
    per_execution = dict.fromkeys(limits, 0)
    for row in picked:
        lane = lanes[row["lane"]]
        if queue_room.get(lane.queue, 1) <= 0:
            continue
        free = per_lane[row["lane"]] < lane.free and per_execution[lane.execution] < limits[lane.execution][0]
        if free or _may_wait(row):
            per_lane[row["lane"]] += 1
            if lane.queue in queue_room:
                queue_room[lane.queue] -= 1
            per_execution[lane.execution] += 1
            taken.append(row)
    return taken


def _may_wait(row: dict[str, Any]) -> bool:
    """Whether a job may be claimed before a slot is free for it."""
    return not (row["at_most_once"] or row["unique_until_started"] or row["execution"] == Execution.PROCESS)


# A row that somebody made without `enqueue` fails alone, at its unreadable arguments, and stops no claim.
_NO_PAYLOAD = (None, 1.0, 300.0, True)


def _claims(db: Database, taken: list[dict[str, Any]], opened: Rows, payloads: Rows) -> list[Claim]:
    attempts = {job_id: (attempt_id, claimed_at) for job_id, attempt_id, claimed_at in opened}
    cold = {row[0]: row[1:] for row in payloads}
    claims = []
    for row in taken:
        attempt_id, claimed_at = attempts[row["id"]]
        arguments, base, cap, jitter = cold.get(row["id"], _NO_PAYLOAD)
        claimed = db.read_instant(claimed_at)
        assert claimed is not None
        claims.append(
            Claim(
                attempt_id=attempt_id,
                job_id=row["id"],
                number=row["attempts"] + 1,
                task=row["task"],
                queue=row["queue"],
                execution=Execution(row["execution"]),
                arguments=db.read_json(arguments) or {},
                failures=row["failures"],
                losses=row["losses"],
                snoozes=row["snoozes"],
                max_retries=row["max_retries"],
                max_lost=row["max_lost"],
                retry_base_seconds=base,
                retry_max_seconds=cap,
                retry_jitter=bool(jitter),
                timeout_seconds=row["timeout_seconds"],
                at_most_once=bool(row["at_most_once"]),
                store_result=bool(row["store_result"]),
                expires_at=None if row["started_at"] else db.read_instant(row["expires_at"]),
                claimed_at=claimed,
                unknown_since=db.read_instant(row["unknown_since"]),
            )
        )
    return claims
