"""Every exception of the project: what callers catch, and what job code raises to steer its own fate."""

from __future__ import annotations

from datetime import timedelta


class JobsError(Exception):
    """Whatever this library refuses; the message says what, where, and what to do."""


class InvalidOption(JobsError, ValueError):
    """A task or a submission was given an option that cannot be used."""


class InvalidRule(JobsError, ValueError):
    """A recurrence rule cannot be read, or never fires; `part` says which of its values is at fault."""

    def __init__(self, message: str, part: str = "expression") -> None:
        super().__init__(message)
        self.part = part

    def __reduce__(self) -> tuple[type[InvalidRule], tuple[str, str]]:
        return type(self), (str(self), self.part)


class InvalidArguments(JobsError, TypeError):
    """The arguments do not fit the task's signature, or do not survive storage as JSON."""


class TaskNotFound(JobsError, LookupError):
    """No registered task has this name."""


class TaskNameTaken(JobsError, ValueError):
    """Two different functions claim one task name."""


class QueueNotDeclared(JobsError, ValueError):
    """The queue is not in `JOBS["QUEUES"]`."""


class JobNotFound(JobsError, LookupError):
    """No job has this id."""


class ScheduleNotFound(JobsError, LookupError):
    """No schedule has this name."""


class UniqueKeyHeld(JobsError):
    """The job cannot go back into the queue: another active job holds its unique key."""


class IllegalMove(JobsError):
    """A status was to be changed past the guard, or against the table of legal moves."""


class NotStorable(JobsError, ValueError):
    """A value cannot be stored as JSON; the message names the path to the culprit."""


class NonRetryableError(JobsError):
    """Raised by a job: fail now, whatever retries are left."""


class CancelJob(JobsError):
    """Raised by a job: end as cancelled, with a reason."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(JobsError):
    """Raised by a job: put it back for a while without using up a retry."""

    def __init__(self, delay: float | timedelta) -> None:
        self.seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
        if not 0 <= self.seconds <= 366 * 86400:
            raise InvalidOption(f"Snooze({delay!r}): give seconds from 0 to 366 days")
        super().__init__(f"snoozed for {self.seconds:g} s")

    def __reduce__(self) -> tuple[type[Snooze], tuple[float]]:
        return type(self), (self.seconds,)


class JobCancelled(JobsError):
    """Raised by `context.check()` when the run was asked to stop."""


class LeaseLost(JobsError):
    """Raised by `context.check()` when another worker may own the job by now."""
