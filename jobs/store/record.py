"""Record outcomes: close attempts under their fence and move their jobs, a group in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from jobs.domain.closing import Closing
from jobs.domain.move import Move, listeners
from jobs.domain.status import AttemptOutcome, Status
from jobs.store.database import Database, PostgreSQL, Rows
from jobs.store.outcome_sql import completed, final_sql, present_in, record_of, steps
from jobs.store.report import report


@dataclass(slots=True)
class Recorded:
    """What became of each closing, by attempt id."""

    closed: dict[int, Status] = field(default_factory=dict)
    """Written; the status the job really went to."""
    skipped: set[int] = field(default_factory=set)
    """Still open and ours, but somebody held the attempt's or the job's row: try again."""
    lost: set[int] = field(default_factory=set)
    """Read as closed, or gone."""
    written_before: set[int] = field(default_factory=set)
    """Read as closed just so: an earlier write of ours arrived after all, though its commit got no answer."""


def record(
    db: Database, worker_id: UUID, closings: Sequence[Closing], *, actor: str, linger_seconds: float = 0.0
) -> Recorded:
    """Close what is still this worker's. Locks attempts, then jobs, each in id order, skipping held rows."""
    recorded = close(db, closings, actor, linger_seconds, worker_id)
    missing = [one.attempt_id for one in closings if one.attempt_id not in recorded.closed]
    if missing:
        recorded.skipped = still_open(db, worker_id, missing)
        lost = [one for one in closings if one.attempt_id in set(missing) - recorded.skipped]
        recorded.written_before = _written_before(db, worker_id, lost) if lost else set()
        recorded.lost = {one.attempt_id for one in lost} - recorded.written_before
    return recorded


def _written_before(db: Database, worker_id: UUID, closings: Sequence[Closing]) -> set[int]:
    """A sweeper closes as lost, so any other outcome is ours."""
    rows = db.rows(
        f"SELECT id, outcome FROM jobs_attempt WHERE id {db.members('ids')} AND worker_id = %(worker_id)s",
        ids=sorted(one.attempt_id for one in closings),
        worker_id=worker_id,
    )
    asked = {one.attempt_id: str(one.outcome) for one in closings}
    return {key for key, outcome in rows if outcome == asked[key] and outcome != AttemptOutcome.LOST}


def lock_attempts(db: Database, attempt_ids: Iterable[int], condition: str = "", **parameters: Any) -> set[int]:
    """The open ones among `attempt_ids`, locked."""
    rows = db.rows(
        f"""
        SELECT id FROM jobs_attempt WHERE id {db.members("ids")} AND outcome = 'running' {condition}
        ORDER BY id {db.lock}
        """,
        ids=sorted(attempt_ids),
        **parameters,
    )
    return {row[0] for row in rows}


def still_open(db: Database, worker_id: UUID, attempt_ids: Iterable[int]) -> set[int]:
    rows = db.rows(
        f"""
        SELECT id FROM jobs_attempt
        WHERE id {db.members("ids")} AND worker_id = %(worker_id)s AND outcome = 'running'
        """,
        ids=sorted(attempt_ids),
        worker_id=worker_id,
    )
    return {row[0] for row in rows}


def close(
    db: Database, closings: Sequence[Closing], actor: str, linger_seconds: float, worker_id: UUID | None = None
) -> Recorded:
    """Write what is still open, of this worker or, without one, of anybody: the caller knows what it closes."""
    recorded = Recorded()
    if not closings:
        return recorded
    parameters = {"linger": linger_seconds} | ({} if worker_id is None else {"worker_id": worker_id})
    write = _at_once if isinstance(db, PostgreSQL) else _in_steps
    rows = write(db, closings, "" if worker_id is None else "AND worker_id = %(worker_id)s", parameters)
    written = {attempt_id: (cancels, moved_at) for attempt_id, cancels, moved_at in rows}
    final = [one.cancelled() if written[one.attempt_id][0] else one for one in closings if one.attempt_id in written]
    recorded.closed = {one.attempt_id: one.status for one in final}
    report(
        db,
        lambda: [
            Move(one.job_id, one.task, Status.RUNNING, one.status, one.number, at, actor)
            for one in final
            if (at := db.read_instant(written[one.attempt_id][1])) is not None
        ],
    )
    return recorded


def _at_once(db: Database, closings: Sequence[Closing], owner: str, parameters: dict[str, Any]) -> Rows:
    """One round trip. It may be one statement because nothing is counted under its locks."""
    # Reading an instant for every row costs more than all the rest of them.
    at = "jobs_job.status_changed_at" if listeners else "NULL"
    given = f" RETURNING closing.attempt_id, closing.cancels, {at}"
    records = [record_of(one) for one in closings]
    present = present_in(records)
    final = completed("final", present)
    writes = ", ".join(
        f"{step.name} AS ({step.sql.format(closing=final)}{given if step.name == 'moved' else ''})"
        for step in steps(db, closings)
    )
    return db.rows(
        f"WITH {final_sql(db, present, owner)}, {writes} SELECT * FROM moved",
        closing=db.encode_records(records),
        **parameters,
    )


def _in_steps(db: Database, closings: Sequence[Closing], owner: str, parameters: dict[str, Any]) -> Rows:
    with db.transaction():
        records = [record_of(one) for one in closings]
        rows = db.rows(
            f"WITH {final_sql(db, present_in(records), owner)} SELECT attempt_id, cancels, job_id FROM final",
            closing=db.encode_records(records),
            **parameters,
        )
        cancels = {row[0]: row[1] for row in rows}
        final = [one.cancelled() if cancels[one.attempt_id] else one for one in closings if one.attempt_id in cancels]
        if not final:
            return []
        moved: dict[int, Any] = {}
        given = db.encode_records(record_of(one) for one in final)
        for step in steps(db, final):
            sql = step.sql.format(closing=db.records("closing", step.columns))
            if step.name == "moved":
                moved = dict(db.rows(f"{sql} RETURNING id, status_changed_at", closing=given))
            else:
                db.execute(sql, closing=given, **parameters)
    return [(attempt_id, cancelled, moved.get(job_id)) for attempt_id, cancelled, job_id in rows]
