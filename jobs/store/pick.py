"""Which ready jobs a claim takes: the heads of the ready heaps, locked, within what the slots have room for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.domain.execution import Execution
from jobs.store.database import Database

COLUMNS = "id, queue, execution, at_most_once, unique_until_started, rank, run_at"
"""What decides; the rest is read when the row is moved, for every expression keeps a copy of its rows."""
ORDER = "lane, rank, run_at, id"
UNBOUNDED = 2**31

Place = tuple[float, datetime, int]
"""Rank, due instant and id: where a job stands in its ready heap."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One queue in one execution, and how many of its jobs this process may take now."""

    queue: str
    execution: Execution
    free: int
    ahead: int = 0
    """Beyond the free slots: only jobs that may be claimed ahead."""
    above: Place | None = None
    """Where the last claim ended. Starting there passes over the dead index entries of what was claimed before,
    which somebody's old snapshot may keep for hours; it also passes over jobs that became ready before it since."""


@dataclass(frozen=True, slots=True)
class Room:
    """What bounds a claim beyond its lanes."""

    limits: Mapping[Execution, tuple[int, int]]
    """Per execution: the free slots, and how many may be claimed ahead of them."""
    at_most: int = UNBOUNDED
    queues: Mapping[str, int] | None = None
    """The most jobs of a queue over all its executions."""
    only_best: bool = False
    """Only the one that comes first over all lanes, whatever its execution."""


def taken_sql(
    db: Database, lanes: Sequence[Lane], room: Room, unknown_tasks: Collection[str]
) -> tuple[str, dict[str, Any]]:
    """Common table expressions that end in `taken`, in its order by `lane`, rank, due instant, id; "" for nothing.

    Beyond the free slots only what may be claimed ahead is taken; the rest goes back untouched at the commit.
    """
    sql, parameters = pick_sql(db, lanes, room.limits, unknown_tasks)
    if not sql or room.at_most <= 0:
        return "", {}
    parameters |= {f"free_{execution}": free for execution, (free, _) in room.limits.items()}
    free = " ".join(f"WHEN '{execution}' THEN %(free_{execution})s" for execution in room.limits)
    in_room = "SELECT * FROM picked"
    if room.queues:
        for number, (queue, left) in enumerate(room.queues.items()):
            parameters |= {f"room{number}": queue, f"left{number}": left}
        most = " ".join(f"WHEN %(room{number})s THEN %(left{number})s" for number in range(len(room.queues)))
        in_room = f"""
            SELECT * FROM (
                SELECT picked.*, row_number() OVER (PARTITION BY queue ORDER BY {ORDER}) AS in_queue FROM picked
            ) AS numbered WHERE in_queue <= CASE queue {most} ELSE {UNBOUNDED} END
        """
    return (
        f"""
        picked AS {db.materialized} ({sql}), in_room AS ({in_room}),
        counted AS (
            SELECT in_room.*, row_number() OVER (PARTITION BY execution ORDER BY {ORDER}) AS place FROM in_room
        ),
        taken AS {db.materialized} (
            SELECT * FROM counted
            WHERE place <= CASE execution {free} END
               OR NOT (at_most_once OR unique_until_started OR execution = '{Execution.PROCESS}')
            ORDER BY {"rank, run_at, id" if room.only_best else ORDER} LIMIT %(at_most)s
        )
        """,
        {**parameters, "at_most": 1 if room.only_best else room.at_most},
    )


def pick_sql(
    db: Database,
    lanes: Sequence[Lane],
    limits: Mapping[Execution, tuple[int, int]],
    unknown_tasks: Collection[str] = (),
) -> tuple[str, dict[str, Any]]:
    """One range scan per lane under one LIMIT per execution, which stops early: what is not taken is not locked.

    Numbers are parameters: each other text would be compiled anew, and stay in the connection's cache of statements.
    `status = 'pending'` in so many words: SQLite uses a partial index only where its own condition is repeated.
    """
    known = f"AND NOT (task {db.members('unknown')})" if unknown_tasks else ""
    parameters: dict[str, Any] = {"unknown": sorted(unknown_tasks)} if unknown_tasks else {}
    arms: dict[Execution, list[str]] = {}
    for number, lane in enumerate(lanes):
        if lane.free + lane.ahead <= 0:
            continue
        parameters |= {f"queue{number}": lane.queue, f"most{number}": lane.free + lane.ahead}
        above = ""
        if lane.above is not None:
            above = f"AND (rank, run_at, id) > (%(rank{number})s, %(run_at{number})s, %(id{number})s)"
            parameters |= dict(zip((f"rank{number}", f"run_at{number}", f"id{number}"), lane.above, strict=True))
        arms.setdefault(lane.execution, []).append(
            f"""SELECT * FROM (
                SELECT {number} AS lane, {COLUMNS} FROM jobs_job
                WHERE status = 'pending' AND queue = %(queue{number})s AND execution = '{lane.execution}' {above}
                  AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > {db.now}) {known}
                ORDER BY rank, run_at, id LIMIT %(most{number})s {db.lock}
            ) AS lane{number}"""
        )
    open_arms = {execution: of_one for execution, of_one in arms.items() if sum(limits[execution]) > 0}
    parameters |= {f"limit_{execution}": sum(limits[execution]) for execution in open_arms}
    parts = [
        f"SELECT * FROM ({' UNION ALL '.join(of_one)} LIMIT %(limit_{execution})s) AS {execution}_lanes"
        for execution, of_one in open_arms.items()
    ]
    return " UNION ALL ".join(parts), parameters
