"""What a running job may ask and say about itself."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from jobs.domain.claim import Claim
from jobs.domain.errors import InvalidOption, JobCancelled, LeaseLost
from jobs.domain.stop import StopReason, StopSignal
from jobs.domain.text import clean_text

logger = logging.getLogger("jobs.task")


@dataclass(frozen=True, slots=True)
class Progress:
    done: float
    total: float | None
    message: str


class Context:
    """Passed as the first argument, `context`, to a task declared with `takes_context=True`.

    Safe to use from any thread that the job starts.
    """

    __slots__ = ("_report", "_stop", "attempt", "fence", "job_id", "scheduled_for")

    def __init__(
        self,
        *,
        job_id: int,
        attempt: int,
        fence: int,
        stop: StopSignal,
        report: Callable[[Progress], None],
        scheduled_for: datetime | None = None,
    ) -> None:
        self.job_id = job_id
        self.attempt = attempt
        """This attempt's number, from 1."""
        self.fence = fence
        """Grows with every attempt of every job: an outside system can refuse a smaller one."""
        self.scheduled_for = scheduled_for
        """Of a schedule's job: the planned instant, whenever it runs; else None."""
        self._stop = stop
        self._report = report

    @classmethod
    def of(cls, claim: Claim, stop: StopSignal, report: Callable[[Progress], None]) -> Context:
        return cls(
            job_id=claim.job_id,
            attempt=claim.number,
            fence=claim.attempt_id,
            stop=stop,
            report=report,
            scheduled_for=claim.scheduled_for,
        )

    @property
    def cancelled(self) -> bool:
        """Whether this run has been asked to stop, for whatever reason."""
        return self._stop.reason is not None

    def check(self) -> None:
        """Raise `LeaseLost` when another worker may own this job, `JobCancelled` on any other request to stop."""
        reason = self._stop.reason
        if reason is StopReason.LEASE_LOST:
            raise LeaseLost(f"job {self.job_id}: the lease of attempt {self.fence} is lost; stop working on it")
        if reason is not None:
            raise JobCancelled(f"job {self.job_id}: asked to stop ({reason})")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Show how far the work is. Cheap: the newest call is written about once a second.

        Raises InvalidOption for a number that is not finite.
        """
        numbers = [float(done)] if total is None else [float(done), float(total)]
        if not all(map(math.isfinite, numbers)):
            raise InvalidOption(f"progress({done!r}, {total!r}): give finite numbers, or no total")
        self._report(Progress(numbers[0], None if total is None else numbers[1], clean_text(str(message), 200)))

    def log(self, message: object, *args: object, level: int = logging.INFO) -> None:
        """Add a line to the log kept with this attempt; it also reaches the logger `jobs.task`."""
        logger.log(level, message, *args)
