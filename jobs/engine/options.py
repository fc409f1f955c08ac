"""What one scheduler is told: numbers and names, no settings and no environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from jobs.domain.due_schedule import DueSchedule
from jobs.domain.errors import TaskNotFound
from jobs.domain.execution import Execution
from jobs.domain.status import Status
from jobs.engine.loop import LONGEST_BACKOFF
from jobs.store.submit import Submission

ROLES = ("both", "scheduler", "worker")


def unknown_task(schedule: DueSchedule, at: datetime) -> Submission | None:
    raise TaskNotFound(f"this process knows no tasks, so not {schedule.task!r}")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Durations are seconds unless they are timedeltas."""

    alias: str = "default"
    queues: Mapping[str, int | None] = field(default_factory=lambda: {"default": None})
    """Queues to serve, and the most slots of this process that each may use (None: all)."""
    slots: Mapping[Execution, int] = field(
        default_factory=lambda: {Execution.THREAD: 8, Execution.ASYNC: 100, Execution.PROCESS: os.cpu_count() or 1}
    )
    concurrency: int | None = None
    """At most this many in flight over all executions."""
    role: str = "both"
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}"[:100])
    worker_id: UUID = field(default_factory=uuid4)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = ""
    lease: float = 60.0
    renew: float = 20.0
    poll: float = 5.0
    start_margin: float = 5.0
    """No body starts later than its claim request plus lease minus this."""
    grace: float = 25.0
    """How long a stop lets jobs finish."""
    cancel_grace: float = 10.0
    """How long a run that was asked to stop may take before its attempt ends on paper, or its process is killed."""
    task_not_found_after: float = 600.0
    unknown_task_pause: float = 30.0
    claim_ahead: float = 0.03
    """Claim ahead of the free slots what they will finish in this time; 0: never."""
    hand_back_after: float = 0.1
    """What was claimed ahead and has not started by then is handed back."""
    process_ends: bool = False
    """Whether the process ends with the scheduler: then no call outlives a stop, and what is interrupted may start
    elsewhere at once."""
    max_jobs: int | None = None
    submission_for: Callable[[DueSchedule, datetime], Submission | None] = unknown_task
    """The job of a schedule's occurrence; None: no job this time. Raises TaskNotFound where the task is unknown."""
    keep: Mapping[Status, timedelta] = field(default_factory=dict)
    """Retention of ended jobs by status; a status that is missing is kept for ever."""
    history_limit: int | None = None
    prune_every: float = 300.0

    @property
    def back_within(self) -> float:
        """The longest backoff of who renews leases or hands back claims: after an outage both must be done before a
        sweeper that had it too has looked twice."""
        return min(LONGEST_BACKOFF, self.renew / 4)

    @property
    def claims(self) -> bool:
        return self.role != "scheduler"

    @property
    def keeps_house(self) -> bool:
        return self.role != "worker"
