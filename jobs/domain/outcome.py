"""How one run of a body ended, as plain data that crosses threads and processes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from jobs.domain.text import first_line, short_class
from jobs.domain.value import value

MAX_RESULT_BYTES = 1024 * 1024
"""Of a result as JSON text in UTF-8."""


class Ending(str, enum.Enum):
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SNOOZED = "snoozed"
    INTERRUPTED = "interrupted"
    """Stopped by the worker's own shutdown: handed back without using up a retry."""
    LOST = "lost"
    """The child process died unasked."""
    UNSTARTED = "unstarted"
    """Claimed, but the body never began: handed back by deleting the attempt."""
    TASK_NOT_FOUND = "task_not_found"
    """This process does not know the task."""

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as text. Every string is free of NUL and of lone surrogates, and cut to a stated length."""

    exception_class: str
    """Dotted path, such as `requests.exceptions.ConnectTimeout`."""
    message: str
    traceback: str
    causes: tuple[str, ...] = ()
    """Dotted classes of the chain, outermost first, without the exception itself."""
    module: str = ""
    """Innermost frame of the project's own code; empty when there is none."""
    function: str = ""

    @property
    def is_ours(self) -> bool:
        """Not an exception that the job raised: such as `jobs.TimedOut`, whose message is a whole sentence."""
        return self.exception_class.rpartition(".")[0] == "jobs"

    def __str__(self) -> str:
        """One line for people; the class as it is stored, and all of the message, are fields."""
        message = first_line(self.message)
        if self.is_ours and message:
            return message
        name = short_class(self.exception_class)
        return f"{name}: {message}" if message else name


@dataclass(frozen=True, slots=True)
class LogLine:
    at_seconds: float
    """Seconds since the attempt began."""
    level: str
    logger: str
    message: str


@value
class Outcome:
    ending: Ending
    result: str | None = None
    """The result as JSON text; None when there is nothing to store."""
    failure: Failure | None = None
    retry_after_seconds: float | None = None
    """FAILED and TIMED_OUT: when the policy wants another attempt. SNOOZED: when to wake. None: no retry."""
    reason: str = ""
    """One line for people: why it was cancelled, snoozed, lost."""
    log: tuple[LogLine, ...] = ()
