"""Durable background jobs in the database you already run.

The names below are imported on first use: importing them here would load models before Django's app registry
is ready.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.api import acancel as acancel
    from jobs.api import aexplain as aexplain
    from jobs.api import aget as aget
    from jobs.api import arequeue as arequeue
    from jobs.api import cancel as cancel
    from jobs.api import explain as explain
    from jobs.api import get as get
    from jobs.api import requeue as requeue
    from jobs.declare import Task as Task
    from jobs.declare import job as job
    from jobs.domain.context import Context as Context
    from jobs.domain.errors import CancelJob as CancelJob
    from jobs.domain.errors import IllegalMove as IllegalMove
    from jobs.domain.errors import InvalidArguments as InvalidArguments
    from jobs.domain.errors import InvalidOption as InvalidOption
    from jobs.domain.errors import InvalidRule as InvalidRule
    from jobs.domain.errors import JobCancelled as JobCancelled
    from jobs.domain.errors import JobNotFound as JobNotFound
    from jobs.domain.errors import JobsError as JobsError
    from jobs.domain.errors import LeaseLost as LeaseLost
    from jobs.domain.errors import NonRetryableError as NonRetryableError
    from jobs.domain.errors import QueueNotDeclared as QueueNotDeclared
    from jobs.domain.errors import ScheduleNotFound as ScheduleNotFound
    from jobs.domain.errors import Snooze as Snooze
    from jobs.domain.errors import TaskNotFound as TaskNotFound
    from jobs.domain.errors import UniqueKeyHeld as UniqueKeyHeld
    from jobs.domain.execution import Execution as Execution
    from jobs.domain.move import Move as Move
    from jobs.domain.priority import Priority as Priority
    from jobs.domain.retry import RetryPolicy as RetryPolicy
    from jobs.domain.status import Status as Status
    from jobs.job_class import AsyncJob as AsyncJob
    from jobs.job_class import BlockingJob as BlockingJob
    from jobs.job_class import CpuBoundJob as CpuBoundJob
    from jobs.recurring import cancel_recurring as cancel_recurring
    from jobs.recurring import schedule_recurring as schedule_recurring
    from jobs.rules import cron as cron
    from jobs.rules import every as every
    from jobs.rules import factory as factory
    from jobs.scheduler import Scheduler as Scheduler
    from jobs.submission import Call as Call
    from jobs.submission import aenqueue_many as aenqueue_many
    from jobs.submission import enqueue_many as enqueue_many

_HOMES = {
    "jobs.api": ("acancel", "aexplain", "aget", "arequeue", "cancel", "explain", "get", "requeue"),
    "jobs.declare": ("Task", "job"),
    "jobs.domain.context": ("Context",),
    "jobs.domain.errors": (
        "CancelJob",
        "IllegalMove",
        "InvalidArguments",
        "InvalidOption",
        "InvalidRule",
        "JobCancelled",
        "JobNotFound",
        "JobsError",
        "LeaseLost",
        "NonRetryableError",
        "QueueNotDeclared",
        "ScheduleNotFound",
        "Snooze",
        "TaskNotFound",
        "UniqueKeyHeld",
    ),
    "jobs.domain.execution": ("Execution",),
    "jobs.domain.move": ("Move",),
    "jobs.domain.priority": ("Priority",),
    "jobs.domain.retry": ("RetryPolicy",),
    "jobs.domain.status": ("Status",),
    "jobs.job_class": ("AsyncJob", "BlockingJob", "CpuBoundJob"),
    "jobs.recurring": ("cancel_recurring", "schedule_recurring"),
    "jobs.rules": ("cron", "every", "factory"),
    "jobs.scheduler": ("Scheduler",),
    "jobs.submission": ("Call", "aenqueue_many", "enqueue_many"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one of ours

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'jobs' has no attribute {name!r}")
        return getattr(import_module(home), name)
