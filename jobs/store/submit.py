"""Insert jobs with their payloads in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from datetime import datetime, timezone

from jobs.domain.execution import Execution
from jobs.domain.move import Move
from jobs.domain.status import WAITING, Status
from jobs.store.database import Database, Rows, SQLite, in_batches, shifted
from jobs.store.report import report

BATCH = 1000

_JOB = {
    "task": "text",
    "queue": "text",
    "execution": "text",
    "priority": "smallint",
    "rank": "float8",
    "deadline": "timestamptz",
    "expires_at": "timestamptz",
    "timeout_seconds": "float8",
    "max_retries": "int",
    "max_lost": "int",
    "at_most_once": "bool",
    "store_result": "bool",
    "unique_key": "text",
    "unique_until_started": "bool",
    "schedule_id": "bigint",
    "scheduled_for": "timestamptz",
}
_PAYLOAD = {
    "arguments": "text",
    "tags": "text",
    "meta": "text",
    "retry_base_seconds": "float8",
    "retry_max_seconds": "float8",
    "retry_jitter": "bool",
}


@dataclass(frozen=True, slots=True)
class Submission:
    """One checked call: plain values; JSON columns as text."""

    task: str
    queue: str
    execution: Execution
    priority: int
    arguments: str
    tags: str = "{}"
    meta: str = "{}"
    run_at: datetime | None = None
    delay_seconds: float = 0.0
    deadline: datetime | None = None
    expires_at: datetime | None = None
    timeout_seconds: float | None = None
    max_retries: int = 0
    max_lost: int = 3
    at_most_once: bool = False
    store_result: bool = True
    unique_key: str | None = None
    unique_until_started: bool = False
    retry_base_seconds: float = 1.0
    retry_max_seconds: float = 300.0
    retry_jitter: bool = True
    schedule_id: int | None = None
    scheduled_for: datetime | None = None
    blocked: bool = False
    """Born blocked: somebody else says when it may run."""

    @property
    def rank(self) -> float:
        return float(-self.priority)


@dataclass(frozen=True, slots=True)
class Receipt:
    job_id: int
    created: bool
    """False when the unique key was held; then `job_id` is the holder, and the rest is the holder's."""
    status: Status
    run_at: datetime
    submitted_at: datetime


def submit(db: Database, submissions: Sequence[Submission], *, actor: str = "") -> list[Receipt]:
    """Insert the jobs and give a receipt for each, in order; one statement per batch of 1,000 (two on SQLite).

    All of them or, when that fails, none. Locks nothing but the inserted rows, each batch in the order of its keys,
    so that batches with the same keys in another order do not deadlock. It may wait for one other row, the holder of
    the same unique key, which is locked until the caller commits if it waits to run: so it cannot start with what the
    caller has not committed yet.
    """
    # A single batch is one statement and needs no more; the caller's own transaction holds several together already.
    together = len(submissions) > BATCH and not db.connection.in_atomic_block
    with db.transaction() if together else nullcontext():
        return [receipt for batch in in_batches(submissions, BATCH) for receipt in _submit_batch(db, batch, actor)]


def _submit_batch(db: Database, batch: Sequence[Submission], actor: str) -> list[Receipt]:
    waiting = dict(enumerate(batch))
    receipts: dict[int, Receipt] = {}
    while waiting:
        receipts |= _insert(db, waiting, actor)
        for position in sorted(waiting.keys() - receipts.keys(), key=lambda one: waiting[one].unique_key or ""):
            holder = _holder(db, waiting[position].unique_key)
            # None: the holder ended between the insert and this look. Insert again.
            if holder is not None:
                receipts[position] = holder
        waiting = {position: one for position, one in waiting.items() if position not in receipts}
    return [receipts[position] for position in range(len(batch))]


def _insert(db: Database, submissions: Mapping[int, Submission], actor: str) -> dict[int, Receipt]:
    records = [_record(db, position, one) for position, one in submissions.items()]
    rows = (
        _insert_sqlite(db, submissions, records)
        if isinstance(db, SQLite)
        else _insert_postgresql(db, db.encode_records(records))
    )
    receipts = {}
    for position, job_id, status, run_at, submitted_at in rows:
        due, submitted = db.read_instant(run_at), db.read_instant(submitted_at)
        assert due is not None and submitted is not None
        receipts[position] = Receipt(job_id, True, Status(status), due, submitted)
    report(
        db,
        lambda: [
            Move(one.job_id, submissions[position].task, None, one.status, None, one.submitted_at, actor)
            for position, one in receipts.items()
        ],
    )
    return receipts


def _record(db: Database, position: int, submission: Submission) -> dict[str, object]:
    record = {field.name: getattr(submission, field.name) for field in fields(submission)}
    if submission.run_at is None and (db.instant or isinstance(db, SQLite)):
        record["run_at"] = shifted(db.instant or datetime.now(timezone.utc), submission.delay_seconds)
    return {**record, "position": position, "rank": submission.rank}


_WHEN = {"position": "int", "run_at": "timestamptz", "delay_seconds": "float8", "blocked": "bool"}
_COLUMNS = {**_WHEN, **_JOB, **_PAYLOAD}
_JOB_NAMES = ", ".join(_JOB)
_PAYLOAD_NAMES = ", ".join(_PAYLOAD)
_WAITING = "(" + ", ".join(f"'{status}'" for status in WAITING) + ")"


def _insert_postgresql(db: Database, records: str) -> Rows:
    payload = _PAYLOAD_NAMES.replace("arguments, tags, meta", "arguments::jsonb, tags::jsonb, meta::jsonb")
    return db.rows(
        f"""
        WITH clock AS MATERIALIZED (SELECT {db.now} AS now),
        input AS MATERIALIZED (
            SELECT nextval(pg_get_serial_sequence('jobs_job', 'id')) AS id, records.*, clock.now,
                   GREATEST(
                       COALESCE(records.run_at, clock.now + delay_seconds * interval '1 second'), clock.now
                   ) AS due_at
            FROM clock, (SELECT * FROM {db.records("records", _COLUMNS)} ORDER BY position) AS records
        ),
        job AS (
            INSERT INTO jobs_job (id, {_JOB_NAMES}, unique_slot, status, run_at, submitted_at, status_changed_at)
            SELECT id, {_JOB_NAMES}, unique_key,
                   CASE WHEN blocked THEN 'blocked' WHEN due_at > now THEN 'scheduled' ELSE 'pending' END,
                   due_at, now, now
            FROM input ORDER BY unique_key, position
            ON CONFLICT (unique_slot) WHERE unique_slot IS NOT NULL DO NOTHING
            RETURNING id, status, run_at, submitted_at
        ),
        payload AS (
            INSERT INTO jobs_payload (job_id, submitted_execution, {_PAYLOAD_NAMES})
            SELECT id, execution, {payload} FROM input WHERE id IN (SELECT id FROM job)
        )
        SELECT position, job.id, job.status, job.run_at, job.submitted_at FROM job JOIN input ON input.id = job.id
        """,
        records=records,
    )


def _insert_sqlite(db: Database, submissions: Mapping[int, Submission], records: list[dict[str, object]]) -> Rows:
    with db.transaction():
        inserted = db.rows(
            f"""
            INSERT INTO jobs_job ({_JOB_NAMES}, unique_slot, status, run_at, submitted_at, status_changed_at)
            SELECT {_JOB_NAMES}, unique_key,
                   CASE WHEN blocked THEN 'blocked' WHEN run_at > %(now)s THEN 'scheduled' ELSE 'pending' END,
                   MAX(run_at, %(now)s), %(now)s, %(now)s
            FROM {db.records("records", _COLUMNS)} WHERE true ORDER BY position
            ON CONFLICT (unique_slot) WHERE unique_slot IS NOT NULL DO NOTHING
            RETURNING id, unique_slot, status, run_at, submitted_at
            """,
            records=db.encode_records(records),
        )
        # RETURNING cannot name the source row: a key names it, and rows without one come in the order of their ids.
        keyless = iter(sorted(row for row in inserted if row[1] is None))
        by_key = {row[1]: row for row in inserted if row[1] is not None}
        rows: Rows = []
        for position, one in submissions.items():
            row = next(keyless) if one.unique_key is None else by_key.pop(one.unique_key, None)
            if row is not None:
                rows.append((position, row[0], *row[2:]))
        job_ids = {row[0]: row[1] for row in rows}
        columns = {"job_id": "bigint", "execution": "text", **_PAYLOAD}
        db.execute(
            f"""
            INSERT INTO jobs_payload (job_id, submitted_execution, {_PAYLOAD_NAMES})
            SELECT job_id, execution, {_PAYLOAD_NAMES} FROM {db.records("records", columns)}
            """,
            records=db.encode_records(
                {"job_id": job_ids[position], **{name: record[name] for name in ("execution", *_PAYLOAD)}}
                for position, record in zip(submissions, records, strict=True)
                if position in job_ids
            ),
        )
    return rows


def _holder(db: Database, key: str | None) -> Receipt | None:
    columns = "id, status, run_at, submitted_at"
    # A running holder is not locked: the engine never waits for a caller.
    holder = f"SELECT {columns} FROM jobs_job WHERE unique_slot = %(key)s AND status"
    rows = db.rows(f"{holder} IN {_WAITING} {db.lock_and_wait}", key=key) or db.rows(f"{holder} = 'running'", key=key)
    if not rows:
        return None
    job_id, status, run_at, submitted_at = rows[0]
    due, submitted = db.read_instant(run_at), db.read_instant(submitted_at)
    assert due is not None and submitted is not None
    return Receipt(job_id, False, Status(status), due, submitted)
