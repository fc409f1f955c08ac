"""Delete what is past its retention."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from jobs.domain.status import TERMINAL, Status
from jobs.store.database import Database, Rows

_TERMINAL = "(" + ", ".join(f"'{status}'" for status in TERMINAL) + ")"
OCCURRENCES_KEPT = 200
"""Per schedule."""
_COLD = (
    ("jobs_failure", "attempt_id IN (SELECT id FROM jobs_attempt WHERE job_id {ids})"),
    ("jobs_attemptlog", "attempt_id IN (SELECT id FROM jobs_attempt WHERE job_id {ids})"),
    ("jobs_attempt", "job_id {ids}"),
    ("jobs_result", "job_id {ids}"),
    ("jobs_payload", "job_id {ids}"),
)


def prune(db: Database, keep: Mapping[Status, timedelta], *, history_limit: int | None = None, batch: int = 500) -> int:
    """How many jobs one batch deleted: call again until it is 0.

    Oldest ends first, per status; then, with `history_limit`, all but the newest that many of each task (never
    across tasks). Skips rows that others hold, and jobs whose call still lingers.
    """
    for status, age in keep.items():
        with db.transaction():
            ids = _past_retention(db, status, age, batch)
            if ids:
                return _delete(db, ids)
    if history_limit is not None:
        with db.transaction():
            ids = _beyond_limit(db, history_limit, batch)
            if ids:
                return _delete(db, ids)
    return 0


def prune_occurrences(db: Database, *, kept: int = OCCURRENCES_KEPT, batch: int = 500) -> int:
    """How many occurrences one batch deleted: call again until it is 0. All but the newest ones of each schedule, and
    all of schedules that were deleted by SQL.

    Skips rows that others hold. The schedule's own row remembers its last instant, so none of them fires again.
    """
    with db.transaction():
        rows = db.rows(
            f"""
            WITH schedule AS {db.materialized} (
                SELECT id, (
                    SELECT planned_at FROM jobs_occurrence WHERE schedule_id = jobs_schedule.id
                    ORDER BY planned_at DESC LIMIT 1 OFFSET {kept - 1}
                ) AS kept_from
                FROM jobs_schedule
            )
            SELECT old.id FROM schedule
            JOIN jobs_occurrence AS old ON old.schedule_id = schedule.id AND old.planned_at < schedule.kept_from
            ORDER BY old.id LIMIT {batch} {_lock_for_delete(db)}
            """
        )
        ids = [row[0] for row in rows or _of_deleted_schedules(db, batch)]
        return db.execute(f"DELETE FROM jobs_occurrence WHERE id {db.members('ids')}", ids=ids) if ids else 0


def _of_deleted_schedules(db: Database, batch: int) -> Rows:
    return db.rows(
        f"""
        SELECT id FROM jobs_occurrence
        WHERE NOT EXISTS (SELECT 1 FROM jobs_schedule WHERE jobs_schedule.id = schedule_id)
        ORDER BY id LIMIT {batch} {_lock_for_delete(db)}
        """
    )


def _lock_for_delete(db: Database) -> str:
    # A delete needs the full lock: under NO KEY UPDATE it could still meet a foreign key's KEY SHARE.
    return db.lock.replace("NO KEY UPDATE", "UPDATE")


def _not_lingering(db: Database) -> str:
    return f"NOT EXISTS (SELECT 1 FROM jobs_attempt WHERE job_id = jobs_job.id AND lingering_until > {db.now})"


def _past_retention(db: Database, status: Status, age: timedelta, batch: int) -> list[int]:
    rows = db.rows(
        f"""
        SELECT id FROM jobs_job
        WHERE status = '{status}' AND status IN {_TERMINAL} AND ended_at < {db.later("%(age)s")}
          AND {_not_lingering(db)}
        ORDER BY ended_at LIMIT {batch} {_lock_for_delete(db)}
        """,
        age=-age.total_seconds(),
    )
    return [row[0] for row in rows]


def _beyond_limit(db: Database, history_limit: int, batch: int) -> list[int]:
    rows = db.rows(
        f"""
        SELECT id FROM jobs_job WHERE status IN {_TERMINAL} AND {_not_lingering(db)} AND id IN (
            SELECT id FROM (
                SELECT id, row_number() OVER (PARTITION BY task ORDER BY ended_at DESC, id DESC) AS place
                FROM jobs_job WHERE status IN {_TERMINAL}
            ) AS placed WHERE place > %(history_limit)s ORDER BY id LIMIT {batch}
        ) ORDER BY id {_lock_for_delete(db)}
        """,
        history_limit=history_limit,
    )
    return [row[0] for row in rows]


def _delete(db: Database, ids: list[int]) -> int:
    for table, condition in _COLD:
        db.execute(f"DELETE FROM {table} WHERE {condition.format(ids=db.members('ids'))}", ids=ids)
    return db.execute(f"DELETE FROM jobs_job WHERE id {db.members('ids')} AND status IN {_TERMINAL}", ids=ids)
