"""`python manage.py runscheduler`: run jobs until told to stop."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import autoreload

from jobs.checks import failed_imports_only_warn
from jobs.conf import jobs_settings
from jobs.domain.errors import JobsError
from jobs.domain.text import first_line
from jobs.engine.options import ROLES
from jobs.management.console_log import show_log
from jobs.management.exit import leave_soon
from jobs.management.option_types import positive, queues, seconds, slots
from jobs.management.status_line import StatusLine
from jobs.management.words import counted_jobs, introduction, left_behind
from jobs.scheduler import Scheduler

logger = logging.getLogger("jobs.runscheduler")

CANNOT_START, AGENT_DIED = 2, 3
LOOK_EVERY = 0.1
SAY_EVERY = 10.0
"""Seconds of a stop between two lines about what it waits for."""


class Command(BaseCommand):
    help = (
        "Run jobs: promote, claim, run, record, reclaim. SIGTERM, SIGHUP or Ctrl-C stops gracefully, a second signal "
        "stops at once. "
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
        add("--drain", action="store_true", help="exit when nothing is due that this process can run")
        add("--max-jobs", type=positive, help="exit when this many jobs have begun and ended")
        add("--grace", type=seconds, default=settings.GRACE, help="seconds that a stop lets jobs finish")
        add("--name", help="the worker's label (default: host:pid)")
        add("--reload", action="store_true", help="restart when code changes (development)")

    def run_from_argv(self, argv: list[str]) -> None:
        # Until there is a scheduler, and while the interpreter winds up, there is nothing to hand back.
        _on_stop_signals(_leave_at_once)
        try:
            jobs_settings()  # the options' defaults: a wrong one is said in a line, before it is a traceback
        except ImproperlyConfigured as error:
            self.stderr.write(f"CommandError: {error}")
            sys.exit(CANNOT_START)
        code: object = 1
        try:
            super().run_from_argv(argv)
            code = 0
        except SystemExit as ended:
            code = ended.code
            raise
        finally:
            _on_stop_signals(signal.SIG_IGN)
            _forget_closed_terminal()
            leave_soon(code)

    def check(self, *args: Any, **kwargs: Any) -> None:
        with failed_imports_only_warn():
            super().check(*args, **kwargs)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except DatabaseError as error:  # from Django 6.1 on its system checks open the database first
            raise _unusable("default", error) from None

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
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda number, frame: None)
            autoreload.run_with_reloader(run)
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, lambda number, frame: sys.exit(0))
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
        if scheduler.options.claims and not any(scheduler.options.slots.values()):
            raise CommandError(
                "no slots, so nothing would ever run: give --threads, --async or --processes a number from 1, "
                "or choose --role scheduler",
                returncode=CANNOT_START,
            )
        if self._signals:
            return
        try:
            scheduler.start()
        except DatabaseError as error:
            raise _unusable(scheduler.options.alias, error) from None
        logger.info("%s", introduction(scheduler.options))
        with StatusLine(scheduler, self.stderr) as status:
            try:
                dead = self._wait(scheduler, status, drain=options["drain"])
            finally:
                self._stop(scheduler, status)
        if dead:
            raise CommandError(f"{', '.join(dead)} died: see the log; restart me", returncode=AGENT_DIED)
        logger.info("worker %s stopped", scheduler.options.name)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Only flags: whatever the main thread holds at this instant must not be touched.
        self._signals += 1
        if self._signals > 1 and self._scheduler is not None:
            self._scheduler.hurry()

    def _wait(self, scheduler: Scheduler, status: StatusLine, *, drain: bool) -> list[str]:
        """Until a signal, or until nothing is left to do; the agents that died, if any."""
        while not self._signals and not scheduler.exhausted:
            if scheduler.dead_loops:
                return scheduler.dead_loops
            if drain and scheduler.join(0, due_only=True):
                _tell_what_is_left(scheduler)
                break
            status.show()
            time.sleep(LOOK_EVERY)
        return []

    def _stop(self, scheduler: Scheduler, status: StatusLine) -> None:
        """In a thread of its own, so that somebody can say meanwhile what it waits for."""
        grace_ends_at = time.monotonic() + scheduler.options.grace
        said_at: float | None = None
        stopping = threading.Thread(target=_stop_and_disconnect, args=(scheduler,), name="jobs-stop")
        stopping.start()
        while stopping.is_alive():
            running, left = _running_jobs(scheduler), max(0.0, grace_ends_at - time.monotonic())
            if running and left:
                status.show_instead(f"waiting {left:.0f} s for {counted_jobs(running)}  (Ctrl-C interrupts)")
            else:
                status.show_instead("stopping")
            if said_at is None and not scheduler.may_claim:
                said_at = time.monotonic()
                if self._signals:
                    logger.info("stopping: no new jobs; %s", _waits_for(running, left))
            elif said_at is not None and running and left and time.monotonic() - said_at >= SAY_EVERY:
                said_at = time.monotonic()
                logger.info("still waiting, %s", _waits_for(running, left))
            stopping.join(LOOK_EVERY if said_at is not None else 0.01)


def _waits_for(running: list[int], seconds: float) -> str:
    if not running:
        return "no job runs"
    return f"up to {seconds:.0f} s for {counted_jobs(running)}; a second signal interrupts them"


def _running_jobs(scheduler: Scheduler) -> list[int]:
    held = scheduler.in_flight.held()
    return sorted(one.claim.job_id for one in held if one.began_at is not None and one.ended_at is None)


def _stop_and_disconnect(scheduler: Scheduler) -> None:
    try:
        scheduler.stop()
    finally:
        connections.close_all()


def _tell_what_is_left(scheduler: Scheduler) -> None:
    try:
        said = left_behind(scheduler.options.role, *scheduler.left_behind())
    except DatabaseError as error:
        said = f"drained; what is left to others cannot be said now: {first_line(str(error))}"
    if said and not scheduler.exhausted:
        logger.warning("%s", said)


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
    reason = first_line(str(error)) or type(error).__name__
    return CommandError(f"database {alias!r} cannot be used: {reason}", returncode=CANNOT_START)


def _on_stop_signals(handler: Any) -> dict[signal.Signals, Any]:
    """Handle the signals that stop us like this; what handled them before, by signal. Only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants us to outlive the terminal
        numbers.append(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in numbers}


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    os._exit(0)


def _forget_closed_terminal() -> None:
    """What could not be said to a terminal that is gone must not become the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
