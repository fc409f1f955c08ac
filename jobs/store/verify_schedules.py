"""What must be true of schedules, their occurrences and the jobs of these; `verify` asks."""

from __future__ import annotations

# Job, attempt and schedule, then where they are from.
_SCHEDULE = "SELECT NULL, NULL, schedule.id FROM jobs_schedule AS schedule"
_OCCURRENCE = """
    SELECT occurrence.job_id, NULL, schedule.id
    FROM jobs_occurrence AS occurrence JOIN jobs_schedule AS schedule ON schedule.id = occurrence.schedule_id
"""
# One pass in order: no index holds the instants of jobs.
_JOB_OF_OCCURRENCE = """
    SELECT job.id, NULL, job.schedule_id FROM (
        SELECT id, schedule_id, row_number() OVER (PARTITION BY schedule_id, scheduled_for ORDER BY id) AS place
        FROM jobs_job WHERE schedule_id IS NOT NULL AND scheduled_for IS NOT NULL
    ) AS job
"""

# Promise, then what to select from and where it is broken; `{timing}` is the text of a rule.
BROKEN = {
    # Whoever resumes a schedule past `save()` leaves it so until a scheduler's next look.
    "a schedule that may fire has a next instant": (
        _SCHEDULE,
        """schedule.next_run_at IS NULL AND schedule.active AND NOT schedule.retired AND schedule.paused_until IS NULL
            AND NOT schedule.is_exhausted AND schedule.problem = '' AND schedule.planned_rule = ({timing})""",
    ),
    "a finished schedule has no next instant": (
        _SCHEDULE,
        "schedule.is_exhausted AND schedule.next_run_at IS NOT NULL",
    ),
    "a schedule's next instant is after its last one": (
        _SCHEDULE,
        "schedule.next_run_at <= schedule.last_occurrence_at",
    ),
    "a schedule remembers every instant that made a job": (
        _OCCURRENCE,
        """occurrence.outcome = 'made'
            AND COALESCE(occurrence.planned_at > schedule.last_occurrence_at, schedule.last_occurrence_at IS NULL)""",
    ),
    "an occurrence that was made names its own job": (
        _OCCURRENCE,
        # The job itself may have been pruned.
        """occurrence.outcome = 'made' AND (occurrence.job_id IS NULL OR EXISTS (
            SELECT 1 FROM jobs_job AS job WHERE job.id = occurrence.job_id AND (
                job.schedule_id IS NULL OR job.schedule_id <> occurrence.schedule_id
                OR job.scheduled_for IS NULL OR job.scheduled_for <> occurrence.planned_at
            )
        ))""",
    ),
    "a planned instant makes at most one job": (_JOB_OF_OCCURRENCE, "job.place > 1"),
}
