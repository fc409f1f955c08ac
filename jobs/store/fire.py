"""Make the jobs of due occurrences and move their schedule's instant, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from jobs.domain.advance import Step
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.recurrence.overlap import Overlap, OverlapDecision, judge_overlap
from jobs.domain.status import Status
from jobs.models.schedule import EDITED, timing_sql
from jobs.store.attention import stands
from jobs.store.database import Database
from jobs.store.submit import Submission, submit
from jobs.store.unblock import UNFINISHED

OVERLAPS = "an earlier job of the schedule has not ended"


@dataclass(slots=True)
class Fired:
    jobs: dict[datetime, int] = field(default_factory=dict)
    """By planned instant."""
    skipped: dict[datetime, str] = field(default_factory=dict)
    """Why there is no job, by planned instant."""


def fire(
    db: Database,
    schedule: DueSchedule,
    step: Step,
    wanted: Mapping[datetime, Submission | str],
    *,
    problem: str = "",
    actor: str,
) -> Fired | None:
    """What became of the step; None when the row is held, or is not any more as it was seen: look again.

    `wanted` gives each occurrence of the step its submission, or the reason why there is none. Locks the schedule's
    row, skipping a held one; which jobs have ended is read after that, in a statement of its own. Nothing is waited
    for: what overlaps is born blocked, and `unblock` releases it.
    """
    with db.transaction():
        if not stands(db, schedule):
            return None
        skips = {at: why for at, why in wanted.items() if isinstance(why, str)}
        if step.left_out is not None:
            by = f" by {schedule.asked_by}" if schedule.asked_by else ""
            skips[step.left_out] = f"skipped{by}{f': {schedule.why}' if schedule.why else ''}"
        if schedule.outdated_at is not None and schedule.outdated_at <= _now(db):
            skips[schedule.outdated_at] = EDITED
        to_make = {at: one for at, one in wanted.items() if isinstance(one, Submission)}
        decision, unfinished = _overlap(db, schedule) if to_make else (OverlapDecision.MAKE, 0)
        if decision is OverlapDecision.SKIP:
            skips |= dict.fromkeys(to_make, OVERLAPS)
            to_make = {}
        if step.reached is not None and not to_make and step.reached not in skips:
            skips[step.reached] = "it was too late"
        fired = Fired(skipped=_record(db, schedule, dict.fromkeys(to_make, ""), skips, step.missed))
        new = [at for at in sorted(to_make) if at not in fired.skipped]
        fired.jobs = _submit(db, schedule, [(at, to_make[at]) for at in new], unfinished, actor)
        _move(db, schedule, step, problem)
    return fired


def park(db: Database, schedule: DueSchedule) -> bool:
    """A paused one has no next instant: when it is resumed, it starts over from then.

    What went wrong with its last occurrence is over as well: a problem without a next instant would be a rule that
    cannot be computed, and wait for an edit. Nor does a pause that ended while it was stopped say when to start over.
    An edit during a pause takes effect now: at the end of the pause it is the rule.
    """
    timing = timing_sql(db.connection.vendor)
    with db.transaction():
        return stands(db, schedule) and bool(
            db.execute(
                f"""
                UPDATE jobs_schedule SET next_run_at = NULL, planned_rule = {timing},
                       problem = '', problem_since = NULL,
                       paused_until = CASE WHEN paused_until > {db.now} THEN paused_until END
                WHERE id = %(id)s
                """,
                id=schedule.id,
            )
        )


def flag(db: Database, schedule: DueSchedule, problem: str) -> bool:
    """A rule that cannot be computed: it has no next instant, and a reason, until it can be."""
    with db.transaction():
        return stands(db, schedule) and flag_unreadable(db, schedule.id, problem)


def flag_unreadable(db: Database, schedule_id: int, problem: str) -> bool:
    """The same for a row that no schedule can be read from. Waits for nobody: a held row is left as it is."""
    with db.transaction():
        if not db.rows(f"SELECT id FROM jobs_schedule WHERE id = %(id)s {db.lock}", id=schedule_id):
            return False
        return bool(
            db.execute(
                f"""
                UPDATE jobs_schedule SET next_run_at = NULL, is_exhausted = false,
                       planned_rule = {timing_sql(db.connection.vendor)}, problem = %(problem)s,
                       problem_since = COALESCE(problem_since, {db.now}), paused_until = NULL
                WHERE id = %(id)s
                """,
                id=schedule_id,
                problem=problem[:500],
            )
        )


def _now(db: Database) -> datetime:
    now = db.read_instant(db.rows(f"SELECT {db.now}")[0][0])
    assert now is not None
    return now


def _overlap(db: Database, schedule: DueSchedule) -> tuple[OverlapDecision, int]:
    rows = db.rows(
        f"SELECT status, attempts FROM jobs_job WHERE schedule_id = %(id)s AND status IN {UNFINISHED}", id=schedule.id
    )
    waiting = sum(status != Status.RUNNING and not attempts for status, attempts in rows)
    decision = judge_overlap(schedule.overlap, waiting=waiting, begun=len(rows) - waiting)
    return decision, 0 if schedule.overlap is Overlap.ALLOW else len(rows)


def _record(
    db: Database, schedule: DueSchedule, made: Mapping[datetime, str], skips: Mapping[datetime, str], missed: int
) -> dict[datetime, str]:
    """Those that are skipped, and those that had been dealt with before although the schedule did not remember it."""
    rows = sorted([(at, "made", "") for at in made] + [(at, "skipped", why) for at, why in skips.items()])
    known = {}
    for at, outcome, why in rows:
        written = db.execute(
            f"""
            INSERT INTO jobs_occurrence (schedule_id, planned_at, outcome, reason, missed, recorded_at)
            VALUES (%(id)s, %(at)s, %(outcome)s, %(why)s, %(missed)s, {db.now})
            ON CONFLICT (schedule_id, planned_at) DO NOTHING
            """,
            id=schedule.id,
            at=at,
            outcome=outcome,
            why=why[:200],
            missed=missed,
        )
        missed = 0
        if not written:
            known[at] = "it was made before"
    return {**skips, **known}


def _submit(
    db: Database,
    schedule: DueSchedule,
    wanted: Sequence[tuple[datetime, Submission]],
    unfinished: int,
    actor: str,
) -> dict[datetime, int]:
    one_by_one = schedule.overlap is not Overlap.ALLOW
    submissions = [
        replace(one, schedule_id=schedule.id, scheduled_for=at, blocked=one_by_one and bool(unfinished or place))
        for place, (at, one) in enumerate(wanted)
    ]
    made = {}
    for (at, _), receipt in zip(wanted, submit(db, submissions, actor=actor), strict=True):
        changes = "job_id = %(job)s"
        if receipt.created:
            made[at] = receipt.job_id
        else:
            changes += ", outcome = 'skipped', reason = 'the unique key is held by that job'"
        db.execute(
            f"UPDATE jobs_occurrence SET {changes} WHERE schedule_id = %(id)s AND planned_at = %(at)s",
            id=schedule.id,
            at=at,
            job=receipt.job_id,
        )
    return made


def _move(db: Database, schedule: DueSchedule, step: Step, problem: str) -> None:
    resumed = ", paused_until = NULL, paused_by = ''" if schedule.timing.not_before is not None else ""
    skipped = ", skip_next = false, skipped_by = ''" if step.left_out is not None else ""
    said = ", reason = ''" if resumed or skipped else ""
    db.execute(
        f"""
        UPDATE jobs_schedule SET next_run_at = %(next_at)s, is_exhausted = %(exhausted)s,
               planned_rule = {timing_sql(db.connection.vendor)},
               last_occurrence_at = COALESCE(%(reached)s, last_occurrence_at), missed = missed + %(missed)s,
               problem = %(problem)s,
               problem_since = CASE WHEN %(problem)s = '' THEN NULL ELSE COALESCE(problem_since, {db.now}) END
               {resumed}{skipped}{said}
        WHERE id = %(id)s
        """,
        id=schedule.id,
        next_at=step.next_at,
        exhausted=step.next_at is None,
        reached=step.reached,
        missed=step.missed,
        problem=problem[:500],
    )
