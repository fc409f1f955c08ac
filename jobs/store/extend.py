"""Renew the leases a worker holds, and bring back what it must know: cancel requests and closed attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from jobs.domain.context import Progress
from jobs.store.database import Database


@dataclass(frozen=True, slots=True)
class Renewal:
    """Attempt ids. One that is in no set was held by somebody: not renewed this time, and not lost."""

    renewed: frozenset[int]
    lost: frozenset[int]
    cancel_requested: frozenset[int]


def extend(
    db: Database,
    worker_id: UUID,
    started: Mapping[int, datetime | None],
    *,
    lease_seconds: float,
    lingering: Collection[int] = (),
) -> Renewal:
    """Renew exactly the attempts named in `started` (attempt id: when its body began, None if it has not).

    Never "all of mine": a claim whose COMMIT got no answer must lapse. An expired attempt that is still open may
    be renewed. Locks attempts in the order of their ids, skipping those that others hold.
    """
    with db.transaction():
        renewed = db.rows(
            f"""
            UPDATE jobs_attempt SET lease_until = {db.later("%(lease)s")},
                   started_at = COALESCE(jobs_attempt.started_at, held.started_at)
            FROM {db.records("held", {"id": "bigint", "started_at": "timestamptz"})}
            WHERE jobs_attempt.id = held.id AND jobs_attempt.id IN (
                SELECT id FROM jobs_attempt
                WHERE id {db.members("ids")} AND worker_id = %(worker_id)s AND outcome = 'running'
                ORDER BY id {db.lock}
            )
            RETURNING jobs_attempt.id
            """,
            held=db.encode_records({"id": key, "started_at": at} for key, at in started.items()),
            ids=sorted(started),
            worker_id=worker_id,
            lease=lease_seconds,
        )
        if lingering:
            db.execute(
                f"""
                UPDATE jobs_attempt SET lingering_until = {db.later("%(lease)s")} WHERE id IN (
                    SELECT id FROM jobs_attempt
                    WHERE id {db.members("ids")} AND worker_id = %(worker_id)s AND lingering_until IS NOT NULL
                    ORDER BY id {db.lock}
                )
                """,
                ids=sorted(lingering),
                worker_id=worker_id,
                lease=lease_seconds,
            )
    return _read(db, worker_id, {row[0] for row in renewed}, set(started))


def _read(db: Database, worker_id: UUID, renewed: set[int], asked: set[int]) -> Renewal:
    rows = db.rows(
        f"""
        SELECT jobs_attempt.id, jobs_job.cancel_requested_at FROM jobs_attempt
        JOIN jobs_job ON jobs_job.id = jobs_attempt.job_id
        WHERE jobs_attempt.id {db.members("ids")} AND worker_id = %(worker_id)s AND outcome = 'running'
        """,
        ids=sorted(asked),
        worker_id=worker_id,
    )
    still_open = {row[0] for row in rows}
    return Renewal(
        renewed=frozenset(renewed),
        lost=frozenset(asked - still_open),
        cancel_requested=frozenset(row[0] for row in rows if row[1] is not None),
    )


def cancel_requests(db: Database, worker_id: UUID, attempt_ids: Collection[int]) -> set[int]:
    """The open ones among this worker's attempts whose jobs somebody asked to stop. Locks nothing."""
    rows = db.rows(
        f"""
        SELECT jobs_attempt.id FROM jobs_attempt JOIN jobs_job ON jobs_job.id = jobs_attempt.job_id
        WHERE jobs_attempt.id {db.members("ids")} AND worker_id = %(worker_id)s AND outcome = 'running'
        AND cancel_requested_at IS NOT NULL
        """,
        ids=sorted(attempt_ids),
        worker_id=worker_id,
    )
    return {row[0] for row in rows}


def stop_lingering(db: Database, worker_id: UUID, attempt_ids: Collection[int]) -> int:
    """The calls returned: their jobs may be started again."""
    return db.execute(
        f"UPDATE jobs_attempt SET lingering_until = NULL WHERE id {db.members('ids')} AND worker_id = %(worker_id)s",
        ids=sorted(attempt_ids),
        worker_id=worker_id,
    )


def note_progress(db: Database, worker_id: UUID, progress: Mapping[int, Progress]) -> int:
    """Write the newest progress of open attempts; a closed one is left as it is."""
    columns = {"id": "bigint", "done": "float8", "total": "float8", "message": "text"}
    return db.execute(
        f"""
        UPDATE jobs_attempt SET progress_done = news.done, progress_total = news.total, progress_message = news.message
        FROM {db.records("news", columns)}
        WHERE jobs_attempt.id = news.id AND jobs_attempt.id IN (
            SELECT id FROM jobs_attempt
            WHERE id {db.members("ids")} AND worker_id = %(worker_id)s AND outcome = 'running' ORDER BY id {db.lock}
        )
        """,
        news=db.encode_records(
            {"id": key, "done": one.done, "total": one.total, "message": one.message} for key, one in progress.items()
        ),
        ids=sorted(progress),
        worker_id=worker_id,
    )


def begin(db: Database, worker_id: UUID, attempt_id: int) -> bool:
    """Whether an at-most-once body may begin: writes its start first, so that a crash after it is never run again.

    False: the attempt is closed, its lease is over, somebody asked the job to stop, or holds one of the two rows.
    Locks attempt and job.
    """
    with db.transaction():
        rows = db.rows(
            f"""
            SELECT jobs_job.id FROM jobs_attempt JOIN jobs_job ON jobs_job.id = job_id
            WHERE jobs_attempt.id = %(id)s AND worker_id = %(worker_id)s AND outcome = 'running'
              AND lease_until > {db.now} AND cancel_requested_at IS NULL
            {db.lock}
            """,
            id=attempt_id,
            worker_id=worker_id,
        )
        if not rows:
            return False
        db.execute(f"UPDATE jobs_attempt SET started_at = {db.now} WHERE id = %(id)s", id=attempt_id)
        db.execute(f"UPDATE jobs_job SET started_at = COALESCE(started_at, {db.now}) WHERE id = %(id)s", id=rows[0][0])
    return True
