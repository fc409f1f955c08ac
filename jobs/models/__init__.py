"""Tables, constraints, indexes, and the guard over a job's status."""

from __future__ import annotations

from jobs.models.attempt import Attempt, AttemptLog
from jobs.models.failure import Failure
from jobs.models.job import Job
from jobs.models.payload import Payload, Result
from jobs.models.release import Release
from jobs.models.schedule import Occurrence, Schedule
from jobs.models.worker import Worker

__all__ = [
    "Attempt",
    "AttemptLog",
    "Failure",
    "Job",
    "Occurrence",
    "Payload",
    "Release",
    "Result",
    "Schedule",
    "Worker",
]
