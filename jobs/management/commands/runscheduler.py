"""`python manage.py runscheduler`: run jobs until told to stop."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import autoreload

from jobs.conf import jobs_settings
from jobs.domain.errors import JobsError
from jobs.domain.execution import Execution
from jobs.engine.options import ROLES
from jobs.management.console_log import show_log
from jobs.management.option_types import positive, queues, seconds, slots
from jobs.management.status_line import StatusLine
from jobs.scheduler import Scheduler

logger = logging.getLogger("jobs.runscheduler")

CANNOT_START, AGENT_DIED = 2, 3
LOOK_EVERY = 0.1


class Command(BaseCommand):
    help = (
        "Run jobs: promote, claim, run, record, reclaim. SIGTERM or Ctrl-C stops gracefully; a second signal at once. "
        "Exit codes: 0 stopped or drained, 2 could not start, 3 a part of the scheduler died."
    )
    requires_migrations_checks = False  # our own check is one line, and refuses

    def add_arguments(self, parser: CommandParser) -> None:
        settings = jobs_settings()
        add = parser.add_argument
        add("--threads", type=slots, default=settings.THREADS, help="slots for thread jobs (default: %(default)s)")
        add(
            "--async",
            dest="async_slots",
            type=slots,
            default=settings.ASYNC,
            help="slots for async jobs (default: %(default)s)",
        )
        add("--processes", type=slots, default=settings.PROCESSES, help="child processes (default: %(default)s)")
        add("--concurrency", type=positive, help="at most this many jobs in flight over all executions")
        add(
            "--queues",
            type=queues,
            help="only these, such as mail:4,default; a number is the most slots of this process that may run it",
        )
        add("--role", choices=ROLES, default="both", help="scheduler: promote, reclaim, prune; worker: claim and run")
        add("--drain", action="store_true", help="exit when nothing is due")
        add("--max-jobs", type=positive, help="exit after this many jobs")
        add("--grace", type=seconds, default=settings.GRACE, help="seconds that a stop lets jobs finish")
        add("--name", help="the worker's label (default: host:pid)")
        add("--reload", action="store_true", help="restart when code changes (development)")

    def run_from_argv(self, argv: list[str]) -> None:
        # Until there is a scheduler, and while the interpreter winds up, there is nothing to hand back.
        _on_stop_signals(_leave_at_once)
        try:
            super().run_from_argv(argv)
        finally:
            _on_stop_signals(signal.SIG_IGN)

    def handle(self, *args: Any, **options: Any) -> None:
        show_log()
        self._signals = 0
        self._scheduler: Scheduler | None = None
        if options["reload"]:
            self._run_with_reloader(options)
            return
        before = _on_stop_signals(self._on_signal)
        try:
            _refuse_unapplied_migrations()
            self._run(options)
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _run_with_reloader(self, options: dict[str, Any]) -> None:
        _refuse_unapplied_migrations()
        ended = threading.Event()

        def run() -> None:
            try:
                self._run(options)
            finally:
                ended.set()

        if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) != "true":
            # Ctrl-C reaches our child too, which needs us alive to end in its own time: Django would kill it.
            signal.signal(signal.SIGINT, lambda number, frame: None)
            autoreload.run_with_reloader(run)
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            autoreload.run_with_reloader(run)
        finally:
            # Stopped, or about to be replaced by new code: nothing waits for the grace.
            self._signals += 1
            if self._scheduler is not None:
                self._scheduler.hurry()
                ended.wait(10.0)

    def _run(self, options: dict[str, Any]) -> None:
        try:
            self._scheduler = scheduler = Scheduler(
                threads=options["threads"],
                async_slots=options["async_slots"],
                processes=options["processes"],
                concurrency=options["concurrency"],
                queues=options["queues"],
                role=options["role"],
                max_jobs=options["max_jobs"],
                grace=options["grace"],
                name=options["name"],
                process_ends=True,
            )
        except (JobsError, ImproperlyConfigured) as error:
            raise CommandError(str(error), returncode=CANNOT_START) from None
        if self._signals:
            return
        try:
            scheduler.start()
        except DatabaseError as error:
            raise _unusable(scheduler.options.alias, error) from None
        logger.info("%s", _introduction(scheduler))
        try:
            dead = self._wait(scheduler, drain=options["drain"] or options["max_jobs"] is not None)
        finally:
            scheduler.stop()
        if dead:
            raise CommandError(f"{', '.join(dead)} died: see the log; restart me", returncode=AGENT_DIED)
        logger.info("worker %s stopped", scheduler.options.name)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Only flags: whatever the main thread holds at this instant must not be touched.
        self._signals += 1
        if self._signals > 1 and self._scheduler is not None:
            self._scheduler.hurry()

    def _wait(self, scheduler: Scheduler, *, drain: bool) -> list[str]:
        """Until a signal, or until nothing is left to do; the agents that died, if any."""
        with StatusLine(scheduler, self.stderr) as status:
            while not self._signals:
                if scheduler.dead_loops:
                    return scheduler.dead_loops
                if drain and scheduler.join(0, due_only=True):
                    break
                status.show()
                time.sleep(LOOK_EVERY)
        if self._signals:
            logger.info(
                "stopping: no new jobs; up to %g s for those that run; a second signal interrupts them",
                scheduler.options.grace,
            )
        return []


def _introduction(scheduler: Scheduler) -> str:
    options = scheduler.options
    what = {"both": "promotes, runs and reclaims", "scheduler": "promotes and reclaims", "worker": "runs"}[options.role]
    queues = ", ".join(name if most is None else f"{name} (at most {most})" for name, most in options.queues.items())
    slots = ", ".join(f"{count} {execution}" for execution, count in options.slots.items() if options.claims and count)
    connection = connections[options.alias]
    parts = [
        f"worker {options.name} {what} jobs of queues {queues}",
        f"slots: {slots}" if slots else "no slots",
        f"database {options.alias} ({connection.display_name})",
        f"lease {options.lease:g} s, poll {options.poll:g} s, grace {options.grace:g} s",
    ]
    if options.claims and not options.slots.get(Execution.PROCESS):
        parts.append("without --processes a job that was lost once waits for another worker")
    return "; ".join(parts)


def _refuse_unapplied_migrations() -> None:
    for alias in dict.fromkeys(("default", jobs_settings().DATABASE)):
        try:
            executor = MigrationExecutor(connections[alias])
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError as error:
            raise _unusable(alias, error) from None
        if plan:
            names = ", ".join(str(migration) for migration, _ in plan[:3])
            raise CommandError(
                f"{len(plan)} unapplied migrations on database {alias!r} ({names}{', ...' * (len(plan) > 3)}): "
                f"run `python manage.py migrate --database {alias}` first",
                returncode=CANNOT_START,
            )


def _unusable(alias: str, error: DatabaseError) -> CommandError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return CommandError(f"database {alias!r} cannot be used: {reason}", returncode=CANNOT_START)


def _on_stop_signals(handler: Any) -> dict[signal.Signals, Any]:
    """Handle the signals that stop us like this; what handled them before, by signal. Only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    os._exit(0)
