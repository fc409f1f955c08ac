"""Record outcomes: close attempts under their fence and move their jobs, a group in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from jobs.domain.closing import Closing
from jobs.domain.move import Move
from jobs.domain.status import TERMINAL, WAITING, AttemptOutcome, Status
from jobs.models.guard import legal_from
from jobs.store.database import Database
from jobs.store.report import report

# Every status an outcome leads to, checked against the table when this module is loaded.
for _target in (*TERMINAL, Status.RETRY_WAIT, Status.PENDING, Status.SCHEDULED):
    _RUNNING = legal_from(Status.RUNNING, to=_target)


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
    with db.transaction():
        ids = [closing.attempt_id for closing in closings]
        open_ids = lock_attempts(db, ids, "AND worker_id = %(worker_id)s", worker_id=worker_id)
        recorded = close(db, [one for one in closings if one.attempt_id in open_ids], actor, linger_seconds)
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


def close(db: Database, closings: Sequence[Closing], actor: str, linger_seconds: float) -> Recorded:
    """Write closings whose attempts the caller has locked as open."""
    recorded = Recorded()
    if not closings:
        return recorded
    jobs = {
        row[0]: row[1]
        for row in db.rows(
            f"""
            SELECT id, cancel_requested_at FROM jobs_job WHERE id {db.members("ids")} AND status IN {_RUNNING}
            ORDER BY id {db.lock}
            """,
            ids=sorted(closing.job_id for closing in closings),
        )
    }
    final = [
        one.cancelled() if jobs[one.job_id] is not None and one.status in WAITING else one
        for one in closings
        if one.job_id in jobs
    ]
    if not final:
        return recorded
    _close_attempts(db, final, linger_seconds)
    moved = _move_jobs(db, final)
    _insert_cold(db, final)
    recorded.closed = {one.attempt_id: one.status for one in final}
    report(db, _moves(db, final, moved, actor))
    return recorded


def _close_attempts(db: Database, closings: Sequence[Closing], linger_seconds: float) -> None:
    columns = {
        "id": "bigint",
        "outcome": "text",
        "reason": "text",
        "started_at": "timestamptz",
        "lingers": "bool",
        "done": "float8",
        "total": "float8",
        "message": "text",
    }
    db.execute(
        f"""
        UPDATE jobs_attempt SET outcome = closing.outcome, reason = closing.reason,
               -- never before its start, also when the clock was put back
               ended_at = CASE WHEN COALESCE(jobs_attempt.started_at, closing.started_at) > {db.now}
                               THEN COALESCE(jobs_attempt.started_at, closing.started_at) ELSE {db.now} END,
               started_at = COALESCE(jobs_attempt.started_at, closing.started_at),
               progress_done = COALESCE(closing.done, progress_done),
               progress_total = CASE WHEN closing.done IS NULL THEN progress_total ELSE closing.total END,
               progress_message = COALESCE(closing.message, progress_message),
               lingering_until = CASE WHEN closing.lingers THEN {db.later("%(linger)s")} END
        FROM {db.records("closing", columns)}
        WHERE jobs_attempt.id = closing.id AND jobs_attempt.outcome = 'running'
        """,
        linger=linger_seconds,
        closing=db.encode_records(
            {
                "id": one.attempt_id,
                "outcome": one.outcome,
                "reason": one.reason[:200],
                "started_at": one.started_at,
                "lingers": one.lingers,
                **_progress(one),
            }
            for one in closings
        ),
    )


def _progress(closing: Closing) -> dict[str, Any]:
    news = closing.progress
    return {} if news is None else {"done": news.done, "total": news.total, "message": news.message}


def _move_jobs(db: Database, closings: Sequence[Closing]) -> dict[int, datetime | None]:
    columns = {
        "id": "bigint",
        "status": "text",
        "ends": "bool",
        "cause": "text",
        "delay_seconds": "float8",
        "failures": "int",
        "losses": "int",
        "snoozes": "int",
        "interruptions": "int",
        "execution": "text",
        "started_at": "timestamptz",
    }
    rows = db.rows(
        f"""
        UPDATE jobs_job SET status = closing.status, status_changed_at = {db.now},
               ended_at = CASE WHEN closing.ends THEN {db.now} END,
               unique_slot = CASE WHEN closing.ends THEN NULL ELSE unique_slot END,
               cause = CASE WHEN closing.ends AND jobs_job.cause = '' THEN closing.cause ELSE jobs_job.cause END,
               run_at = CASE WHEN closing.delay_seconds IS NULL THEN run_at
                             ELSE {db.later("closing.delay_seconds")} END,
               failures = jobs_job.failures + closing.failures,
               losses = jobs_job.losses + closing.losses,
               snoozes = jobs_job.snoozes + closing.snoozes,
               interruptions = jobs_job.interruptions + closing.interruptions,
               execution = COALESCE(closing.execution, jobs_job.execution),
               started_at = COALESCE(jobs_job.started_at, closing.started_at),
               unknown_since = NULL
        FROM {db.records("closing", columns)}
        WHERE jobs_job.id = closing.id AND jobs_job.status IN {_RUNNING}
        RETURNING jobs_job.id, status_changed_at
        """,
        closing=db.encode_records(
            {
                "id": one.job_id,
                "status": one.status,
                "ends": one.status in TERMINAL,
                "cause": one.reason[:200],
                "delay_seconds": one.delay_seconds,
                "failures": one.failures,
                "losses": one.losses,
                "snoozes": one.snoozes,
                "interruptions": one.interruptions,
                "execution": one.execution,
                "started_at": one.started_at,
            }
            for one in closings
        ),
    )
    return {job_id: db.read_instant(at) for job_id, at in rows}


def _insert_cold(db: Database, closings: Sequence[Closing]) -> None:
    _insert_results(db, [one for one in closings if one.result is not None and one.status is Status.COMPLETED])
    _insert_failures(db, [one for one in closings if one.failure is not None])
    _insert_logs(db, [one for one in closings if one.log])


def _insert_results(db: Database, closings: Sequence[Closing]) -> None:
    if closings:
        cast = f"CAST(given.value AS {db.json_type})"
        db.execute(
            f"""
            INSERT INTO jobs_result (job_id, value)
            SELECT given.job_id, {cast} FROM {db.records("given", {"job_id": "bigint", "value": "text"})}
            """,
            given=db.encode_records({"job_id": one.job_id, "value": one.result} for one in closings),
        )


def _insert_failures(db: Database, closings: Sequence[Closing]) -> None:
    if not closings:
        return
    columns = {
        "attempt_id": "bigint",
        "job_id": "bigint",
        "task": "text",
        "exception_class": "text",
        "causes": "text",
        "module": "text",
        "function": "text",
        "message": "text",
        "traceback": "text",
    }
    names = ", ".join(columns)
    values = names.replace("causes", f"CAST(causes AS {db.json_type})")
    db.execute(
        f"INSERT INTO jobs_failure ({names}, failed_at) SELECT {values}, {db.now} FROM {db.records('given', columns)}",
        given=db.encode_records(
            {
                "attempt_id": one.attempt_id,
                "job_id": one.job_id,
                "task": one.task,
                "exception_class": one.failure.exception_class[:200],
                "causes": json.dumps(list(one.failure.causes)),
                "module": one.failure.module[:200],
                "function": one.failure.function[:200],
                "message": one.failure.message,
                "traceback": one.failure.traceback,
            }
            for one in closings
            if one.failure is not None
        ),
    )


def _insert_logs(db: Database, closings: Sequence[Closing]) -> None:
    if closings:
        db.execute(
            f"""
            INSERT INTO jobs_attemptlog (attempt_id, lines)
            SELECT given.attempt_id, CAST(given.lines AS {db.json_type})
            FROM {db.records("given", {"attempt_id": "bigint", "lines": "text"})}
            """,
            given=db.encode_records(
                {
                    "attempt_id": one.attempt_id,
                    "lines": json.dumps([[round(x.at_seconds, 3), x.level, x.logger, x.message] for x in one.log]),
                }
                for one in closings
            ),
        )


def _moves(
    db: Database, closings: Sequence[Closing], moved: dict[int, datetime | None], actor: str
) -> Callable[[], list[Move]]:
    return lambda: [
        Move(one.job_id, one.task, Status.RUNNING, one.status, one.number, at, actor)
        for one in closings
        if (at := moved.get(one.job_id)) is not None
    ]
