"""The registry of live workers: who serves what, and who sleeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from jobs.domain.execution import Execution
from jobs.store.database import Database


@dataclass(frozen=True, slots=True)
class WorkerCard:
    """What a worker says of itself."""

    id: UUID
    name: str
    host: str
    pid: int
    role: str
    version: str
    queues: tuple[str, ...]
    slots: dict[Execution, int]


def beat(db: Database, card: WorkerCard, *, asleep: bool = False) -> None:
    """Note that the worker lives. Its row is made anew when somebody deleted it."""
    columns = "id, name, host, pid, role, version, queues, slots, asleep, started_at, seen_at"
    db.execute(
        f"""
        INSERT INTO jobs_worker ({columns}) VALUES (
            %(id)s, %(name)s, %(host)s, %(pid)s, %(role)s, %(version)s,
            CAST(%(queues)s AS {db.json_type}), CAST(%(slots)s AS {db.json_type}), %(asleep)s, {db.now}, {db.now}
        ) ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
        """,
        id=card.id,
        name=card.name,
        host=card.host,
        pid=card.pid,
        role=card.role,
        version=card.version,
        queues=json.dumps(card.queues),
        asleep=asleep,
        slots=json.dumps({str(execution): slots for execution, slots in card.slots.items()}),
    )


def leave(db: Database, worker_id: UUID) -> None:
    db.execute("DELETE FROM jobs_worker WHERE id = %(id)s", id=worker_id)


def mark_asleep(db: Database, worker_id: UUID, asleep: bool) -> None:
    """Leave or remove the mark by which a submit knows that a hint has a reader."""
    db.execute("UPDATE jobs_worker SET asleep = %(asleep)s WHERE id = %(id)s", id=worker_id, asleep=asleep)


def forget_silent(db: Database, *, silent_seconds: float) -> int:
    """Delete rows of workers not seen for that long. Nothing about recovery depends on them."""
    return db.execute(f"DELETE FROM jobs_worker WHERE seen_at < {db.later('%(age)s')}", age=-silent_seconds)


def live_roles(db: Database, *, within_seconds: float) -> set[str]:
    """The roles (both, scheduler, worker) of the workers seen within that time."""
    rows = db.rows(f"SELECT DISTINCT role FROM jobs_worker WHERE seen_at >= {db.later('%(age)s')}", age=-within_seconds)
    return {row[0] for row in rows}


def live_workers(db: Database, *, within_seconds: float) -> set[UUID]:
    """The ids of the workers seen within that time."""
    rows = db.rows(f"SELECT id FROM jobs_worker WHERE seen_at >= {db.later('%(age)s')}", age=-within_seconds)
    return {UUID(str(row[0])) for row in rows}


@dataclass(frozen=True, slots=True)
class SeenWorker:
    id: UUID
    name: str
    role: str
    queues: list[str]
    """One that only schedules serves no queue."""
    slots: dict[str, int]
    seen_at: datetime
    is_live: bool


def seen_workers(db: Database, *, live_within_seconds: float) -> list[SeenWorker]:
    """Also those that fell silent a while ago."""
    rows = db.rows(
        f"SELECT id, name, role, queues, slots, seen_at, seen_at >= {db.later('%(age)s')} FROM jobs_worker",
        age=-live_within_seconds,
    )
    return [
        SeenWorker(UUID(str(key)), name, role, db.read_json(queues), db.read_json(slots), at, bool(is_live))
        for key, name, role, queues, slots, seen_at, is_live in rows
        if (at := db.read_instant(seen_at)) is not None
    ]


def lingering_calls(db: Database, execution: Execution) -> dict[UUID, int]:
    """How many slots of this execution are held by calls that go on although their attempts are closed, by worker."""
    rows = db.rows(
        f"""
        SELECT worker_id, count(*) FROM jobs_attempt JOIN jobs_job ON jobs_job.id = jobs_attempt.job_id
        WHERE lingering_until IS NOT NULL AND lingering_until > {db.now} AND execution = %(execution)s
        GROUP BY worker_id
        """,
        execution=execution.value,
    )
    return {UUID(str(worker_id)): count for worker_id, count in rows}


def zones_in_use(db: Database) -> list[str]:
    """The time zones that schedules name."""
    rows = db.rows("SELECT DISTINCT timezone FROM jobs_schedule WHERE expression <> '' ORDER BY timezone")
    return [row[0] for row in rows]


def others_with_tz_data(
    db: Database, worker_id: UUID, digests: Mapping[str, str], *, within_seconds: float
) -> dict[str, list[str]]:
    """Leave what this worker believes of zones; the names of live workers that believe otherwise, with the zones."""
    db.execute(
        f"UPDATE jobs_worker SET tz_data = CAST(%(mine)s AS {db.json_type}) WHERE id = %(id)s",
        id=worker_id,
        mine=json.dumps(digests),
    )
    rows = db.rows(
        f"SELECT name, tz_data FROM jobs_worker WHERE id <> %(id)s AND seen_at >= {db.later('%(age)s')}",
        id=worker_id,
        age=-within_seconds,
    )
    others = {name: db.read_json(theirs) or {} for name, theirs in rows}
    differing = {
        name: sorted(zone for zone in digests if theirs.get(zone, digests[zone]) != digests[zone])
        for name, theirs in others.items()
    }
    return {name: zones for name, zones in differing.items() if zones}
