"""Check the promises on a live database: every row found breaks one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.models.schedule import timing_sql
from jobs.store import verify_schedules
from jobs.store.database import Database

SHOWN = 100
"""Violations named per promise."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What breaks a promise: a job, one of its attempts, a schedule, or a job of a schedule."""

    promise: str
    job_id: int | None = None
    attempt_id: int | None = None
    schedule_id: int | None = None

    def __str__(self) -> str:
        parts = {"schedule": self.schedule_id, "job": self.job_id, "attempt": self.attempt_id}
        return ", ".join(f"{kind} {number}" for kind, number in parts.items() if number is not None)


# Job, attempt and schedule, then where they are from.
_ATTEMPT = (
    "SELECT job.id, attempt.id, NULL FROM jobs_attempt AS attempt JOIN jobs_job AS job ON job.id = attempt.job_id"
)
_JOB = "SELECT job.id, NULL, NULL FROM jobs_job AS job"
_WAITING = "('blocked', 'scheduled', 'pending', 'retry_wait')"
_UNFINISHED = "('blocked', 'scheduled', 'pending', 'retry_wait', 'running')"
_TERMINAL = "('completed', 'failed', 'timed_out', 'cancelled')"

# Promise, then what to select from and where it is broken.
_BROKEN = {
    "a running job has an open attempt": (
        _JOB,
        """job.status = 'running' AND NOT EXISTS (
            SELECT 1 FROM jobs_attempt WHERE job_id = job.id AND outcome = 'running'
        )""",
    ),
    "an open attempt belongs to a running job": (
        _ATTEMPT,
        "attempt.outcome = 'running' AND job.status <> 'running'",
    ),
    "a job never has two open attempts": (
        _ATTEMPT,
        """attempt.outcome = 'running' AND EXISTS (
            SELECT 1 FROM jobs_attempt AS other
            WHERE other.job_id = attempt.job_id AND other.outcome = 'running' AND other.id < attempt.id
        )""",
    ),
    "an attempt's number is its job's own and at most the job's count": (
        _ATTEMPT,
        """attempt.number > job.attempts OR attempt.number < 1 OR EXISTS (
            SELECT 1 FROM jobs_attempt AS other
            WHERE other.job_id = attempt.job_id AND other.number = attempt.number AND other.id < attempt.id
        )""",
    ),
    "a closed attempt has an end, not before its start": (
        _ATTEMPT,
        """attempt.outcome <> 'running' AND (attempt.ended_at IS NULL OR attempt.started_at > attempt.ended_at)""",
    ),
    "a completed job has a completed attempt": (
        _JOB,
        """job.status = 'completed' AND NOT EXISTS (
            SELECT 1 FROM jobs_attempt WHERE job_id = job.id AND outcome = 'completed'
        )""",
    ),
    "a failed or timed out job has a closed attempt that tells why": (
        _JOB,
        """job.status IN ('failed', 'timed_out') AND NOT EXISTS (
            SELECT 1 FROM jobs_attempt JOIN jobs_failure ON jobs_failure.attempt_id = jobs_attempt.id
            WHERE jobs_attempt.job_id = job.id AND outcome <> 'running'
        )""",
    ),
    "an ended job has its end, and no other has": (
        _JOB,
        f"(job.status IN {_TERMINAL}) <> (job.ended_at IS NOT NULL)",
    ),
    "an ended job holds no unique key": (
        _JOB,
        f"job.status IN {_TERMINAL} AND job.unique_slot IS NOT NULL",
    ),
    "an unfinished job holds its unique key": (
        _JOB,
        f"""job.status IN {_UNFINISHED} AND job.unique_key IS NOT NULL AND NOT job.unique_until_started
            AND COALESCE(job.unique_slot <> job.unique_key, true)""",
    ),
    "no job waits that somebody asked to stop": (
        _JOB,
        f"job.status IN {_WAITING} AND job.cancel_requested_at IS NOT NULL",
    ),
    "a job that waits for a retry has failed": (
        _JOB,
        "job.status = 'retry_wait' AND job.failures = 0",
    ),
    "a job completes at most once": (
        _ATTEMPT,
        """attempt.outcome = 'completed' AND EXISTS (
            SELECT 1 FROM jobs_attempt AS other
            WHERE other.job_id = attempt.job_id AND other.outcome = 'completed' AND other.id < attempt.id
        )""",
    ),
    "what a job has failed and lost is borne out by its attempts": (
        _JOB,
        """job.failures > (
            SELECT count(*) FROM jobs_attempt WHERE job_id = job.id AND outcome IN ('failed', 'timed_out')
        ) OR job.losses > (SELECT count(*) FROM jobs_attempt WHERE job_id = job.id AND outcome = 'lost')""",
    ),
    "only a closed attempt lingers": (
        _ATTEMPT,
        "attempt.outcome = 'running' AND attempt.lingering_until IS NOT NULL",
    ),
    "only a completed job has a result": (
        _JOB,
        "job.status <> 'completed' AND EXISTS (SELECT 1 FROM jobs_result WHERE job_id = job.id)",
    ),
    "every job has its payload": (
        _JOB,
        "NOT EXISTS (SELECT 1 FROM jobs_payload WHERE job_id = job.id)",
    ),
}


LEASE_OVER = "no open attempt's lease is long over"
BLOCKED = "a blocked job waits for an earlier one of its schedule"
PROMISES = (*_BROKEN, *verify_schedules.BROKEN, LEASE_OVER, BLOCKED)


def verify(db: Database, *, overdue_seconds: float) -> Iterator[Violation]:
    """Every violation, at most 100 per promise. Locks nothing; reads whole tables, each promise in one statement.

    A lease may be over for `overdue_seconds` (two sweeps and a little) before a scheduler takes the job back. Where no
    scheduler runs, nobody does, and that is what the violation says.
    """
    late = f"attempt.outcome = 'running' AND attempt.lease_until < {db.later('%(age)s')}"
    # When the earlier one has ended, a planner lets it go at its next look.
    stuck = f"""job.status = 'blocked' AND NOT EXISTS (
        SELECT 1 FROM jobs_job AS earlier WHERE earlier.schedule_id = job.schedule_id AND earlier.id < job.id
        AND (earlier.status IN {_UNFINISHED} OR earlier.ended_at > {db.later("%(age)s")})
    )"""
    broken = {**_BROKEN, **verify_schedules.BROKEN, LEASE_OVER: (_ATTEMPT, late), BLOCKED: (_JOB, stuck)}
    for promise, (source, condition) in broken.items():
        parameters = {"age": -overdue_seconds} if "%(age)s" in condition else {}
        if promise in verify_schedules.BROKEN:
            condition = condition.replace("{timing}", timing_sql(db.connection.vendor))
        rows = db.rows(f"{source} WHERE {condition} ORDER BY 1, 2, 3 LIMIT {SHOWN}", **parameters)
        for job_id, attempt_id, schedule_id in rows:
            yield Violation(promise, job_id, attempt_id, schedule_id)
