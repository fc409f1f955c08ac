"""Where a job stands, said once for people and once for programs."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.domain.status import Status


@dataclass(frozen=True, slots=True)
class Explanation:
    """`str(explanation)` is one sentence for people; `reason` is a stable word for programs."""

    job_id: int
    status: Status
    reason: str
    """finished, running, stopping, waits_for_time, waits_for_retry, blocked, unknown_task, no_worker, stuck, behind,
    next."""
    sentence: str
    command: str = ""
    """What to type when something is missing."""

    def __str__(self) -> str:
        return f"{self.sentence} Run: {self.command}" if self.command else self.sentence
