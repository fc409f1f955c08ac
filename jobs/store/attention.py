"""One look at the schedules: which of them want attention, and when the next one is due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from jobs.domain.advance import Timing
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.recurrence.catch_up import CatchUp
from jobs.domain.recurrence.overlap import Overlap
from jobs.domain.recurrence.plain import PlainRule
from jobs.models.schedule import timing_sql
from jobs.store.database import Database, Rows

COLUMNS = (
    "id, name, task, arguments, options, factory, expression, timezone, interval_seconds, anchor_at, start_at, "
    "end_at, jitter_seconds, overlap, catch_up, catch_up_cap, active, retired, paused_until, skip_next, skipped_by, "
    "reason, next_run_at, last_occurrence_at, planned_rule"
)


EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=timezone.utc), datetime(9999, 1, 1, tzinfo=timezone.utc)
_INSTANTS = ("anchor_at", "start_at", "end_at", "paused_until", "next_run_at", "last_occurrence_at")
# As text: 'infinity' and the like, which only SQL can write, must not keep the other rows from being read.
_READ = ", ".join(f"CAST({name} AS text)" if name in _INSTANTS else name for name in COLUMNS.split(", "))


@dataclass(frozen=True, slots=True)
class Schedules:
    now: datetime
    """By the database's clock."""
    due: tuple[DueSchedule, ...]
    unreadable: dict[int, str]
    """Rows that no schedule can be read from, by id, with the reason."""
    next_in: float | None
    """Seconds until the next planned instant of any that is not due yet."""
    holds_jobs: bool
    """Whether jobs wait for the end of an earlier one of their schedule."""


def attend(db: Database, *, limit: int = 500) -> Schedules:
    """Longest due first. One statement when nothing is to be done; locks nothing."""
    wanting = _wanting(db)
    anything, next_at, holds, at = db.rows(
        f"""
        SELECT EXISTS (SELECT 1 FROM jobs_schedule WHERE {wanting}),
               (SELECT CAST(min(next_run_at) AS text) FROM jobs_schedule WHERE next_run_at > {db.now}),
               EXISTS (SELECT 1 FROM jobs_job WHERE status = 'blocked' AND schedule_id IS NOT NULL),
               {db.now}
        """
    )[0]
    now = db.read_instant(at)
    assert now is not None
    due, unreadable = [], {}
    for *row, edited in _rows(db, wanting, limit) if anything else ():
        try:
            due.append(_due(db, tuple(row), bool(edited), now))
        except Exception as error:  # noqa: BLE001 - whatever SQL has left in one row, the others are read
            unreadable[row[0]] = str(error) or type(error).__name__
    planned = db.read_instant(next_at)
    next_in = None if planned is None else (planned - now).total_seconds()
    return Schedules(now, tuple(due), unreadable, next_in, bool(holds))


def _rows(db: Database, wanting: str, limit: int) -> Rows:
    timing = timing_sql(db.connection.vendor)
    return db.rows(
        f"""
        SELECT {_READ}, planned_rule <> ({timing}) FROM jobs_schedule WHERE {wanting} ORDER BY next_run_at, id
        LIMIT {limit}
        """
    )


def stands(db: Database, schedule: DueSchedule) -> bool:
    """Whether the row is exactly as it was seen; then it is locked until the transaction ends. Skips a held one."""
    rows = db.rows(f"SELECT {_READ} FROM jobs_schedule WHERE id = %(id)s {db.lock}", id=schedule.id)
    return rows == [schedule.row]


def _wanting(db: Database) -> str:
    """Paused, and not parked yet; or due, edited, not planned yet, or just out of a pause."""
    timing = timing_sql(db.connection.vendor)
    return f"""
        CASE WHEN NOT active OR retired OR COALESCE(paused_until > {db.now}, false)
             THEN next_run_at IS NOT NULL OR COALESCE(paused_until <= {db.now}, false)
                  OR planned_rule <> ({timing})
             ELSE COALESCE(next_run_at <= {db.now}, false) OR paused_until IS NOT NULL
                  OR planned_rule <> ({timing})
                  OR (next_run_at IS NULL AND NOT is_exhausted)
        END
    """


def _due(db: Database, row: tuple[Any, ...], edited: bool, now: datetime) -> DueSchedule:
    named = dict(zip(COLUMNS.split(", "), row, strict=True))

    def at(name: str) -> datetime | None:
        instant = db.read_instant(named[name])
        if named[name] is not None and (instant is None or not EARLIEST < instant < LATEST):
            raise ValueError(f"{name}: {named[name]} is no instant that a schedule may have")
        return instant

    paused_until, planned_at = at("paused_until"), at("next_run_at")
    rule = PlainRule(
        expression=named["expression"],
        timezone=named["timezone"] if named["expression"] else "",
        interval_seconds=named["interval_seconds"],
        anchor_at=at("anchor_at"),
        start_at=at("start_at"),
        end_at=at("end_at"),
        jitter_seconds=named["jitter_seconds"],
    )
    timing = Timing(
        rule=rule,
        planned_at=None if edited else planned_at,
        last_occurrence_at=at("last_occurrence_at"),
        not_before=None if edited else paused_until,
        catch_up=_member(CatchUp, named["catch_up"], CatchUp.COALESCE),
        catch_up_cap=min(max(1, named["catch_up_cap"]), 100),
        skip_next=bool(named["skip_next"]),
    )
    return DueSchedule(
        id=named["id"],
        name=named["name"],
        task=named["task"],
        arguments=db.read_json(named["arguments"]) or {},
        options=db.read_json(named["options"]) or {},
        factory=named["factory"],
        timing=timing,
        overlap=_member(Overlap, named["overlap"], Overlap.SKIP),
        paused=not named["active"] or bool(named["retired"]) or (paused_until is not None and paused_until > now),
        outdated_at=planned_at if edited else None,
        asked_by=named["skipped_by"],
        why=named["reason"],
        row=row,
    )


def _member(kind: Any, value: str, default: Any) -> Any:
    """What an edit by SQL left in the column, if it is one of the words; one bad row must not stop the others."""
    return kind(value) if value in [one.value for one in kind] else default
