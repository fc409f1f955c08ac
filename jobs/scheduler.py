"""The scheduler for code that embeds it: settings read, and callables of this process only."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from jobs import api
from jobs.conf import jobs_settings, require_declared
from jobs.declared import sync_declared
from jobs.domain.errors import InvalidOption
from jobs.domain.execution import Execution
from jobs.domain.move import Move
from jobs.domain.option_checks import checked_text
from jobs.domain.options import TaskOptions
from jobs.domain.registry import registry
from jobs.domain.status import TERMINAL
from jobs.domain.task import define
from jobs.engine import scheduler as engine
from jobs.engine.options import ROLES, EngineOptions
from jobs.recurring import submission_for
from jobs.submission import Submitter
from jobs.version import __version__

MAX_WORKER_NAME = 100


def engine_options(
    *,
    threads: int | None = None,
    async_slots: int | None = None,
    processes: int | None = None,
    queues: Mapping[str, int | None] | None = None,
    **changes: Any,
) -> EngineOptions:
    """`JOBS` with what the caller says instead; the other keywords are fields of EngineOptions.

    Raises QueueNotDeclared, InvalidOption, ImproperlyConfigured.
    """
    settings = jobs_settings()
    served = dict.fromkeys(settings.QUEUES) if queues is None else dict(queues)
    for queue in served:
        require_declared(queue)
    slots = {
        Execution.THREAD: settings.THREADS if threads is None else threads,
        Execution.ASYNC: settings.ASYNC if async_slots is None else async_slots,
        Execution.PROCESS: settings.PROCESSES if processes is None else processes,
    }
    if changes.get("role", "both") not in ROLES:
        raise InvalidOption(f"role={changes['role']!r}: give one of {', '.join(ROLES)}")
    if changes.get("name") is not None:
        changes["name"] = checked_text(changes["name"], "name", MAX_WORKER_NAME)
    given = {
        "alias": settings.DATABASE,
        "queues": served,
        "slots": slots,
        "lease": settings.LEASE,
        "renew": settings.RENEW,
        "poll": settings.POLL,
        "grace": settings.GRACE,
        "cancel_grace": settings.CANCEL_GRACE,
        "claim_ahead": settings.CLAIM_AHEAD,
        "task_not_found_after": settings.TASK_NOT_FOUND_AFTER,
        "keep": settings.RETENTION,
        "history_limit": settings.HISTORY_LIMIT,
        "version": __version__,
        "submission_for": submission_for,
    }
    return EngineOptions(**{**given, **{key: value for key, value in changes.items() if value is not None}})


class Scheduler(engine.Scheduler):
    """`start()`, `stop()`, `join()`: the scheduler that `runscheduler` runs, in a process of your own."""

    def __init__(self, **overrides: Any) -> None:
        super().__init__(engine_options(**overrides))
        self._numbers = itertools.count(1)
        self._prefix = f"local:{self.options.worker_id.hex}:"

    def start(self) -> None:
        if self.options.keeps_house:
            sync_declared()
        super().start()

    def schedule(self, function: Callable[[], Any], delay_seconds: float | timedelta = 0, **options: Any) -> int:
        """The id of a job that calls `function()` in this process, after a delay.

        The callable is registered under a name that only this process knows: when the process dies first, the job
        ends as "task not found". Needs no `start()` yet.
        """
        number = next(self._numbers)
        if number == 1:
            # Not before: with a listener, every move of every job is told.
            self.add_listener(self._forget_callable)
        name = f"{self._prefix}{number}"
        definition = registry.add(define(function, name=name, options=TaskOptions()))
        submitter: Submitter[Any] = Submitter(definition)
        job = submitter.using(**{"queue": next(iter(self.options.queues)), "delay": delay_seconds, **options}).enqueue()
        return int(job.pk)

    def cancel(self, job_id: int) -> bool:
        """`jobs.cancel` for a job of this scheduler or any other."""
        return api.cancel(job_id)

    def shutdown(self, timeout: float | None = None) -> None:
        """`stop`, under the name that in-process schedulers use."""
        self.stop(timeout=timeout)

    def _forget_callable(self, move: Move) -> None:
        if move.new in TERMINAL and move.task.startswith(self._prefix):
            registry.remove(move.task)
