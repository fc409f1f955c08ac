"""What happens inside a child process: it sets itself up, then runs one body after the other."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

import django
from django.db import connections
from django.utils.module_loading import import_string

from jobs.domain.claim import Claim
from jobs.domain.context import Context
from jobs.domain.errors import JobCancelled
from jobs.domain.failure import describe
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.stop import StopSignal
from jobs.engine.executors import message, verdict
from jobs.engine.executors.board import READY, UNUSABLE, Board
from jobs.engine.executors.child_run import ChildRun
from jobs.engine.executors.fork_server import die_with_parent

WATCH_INTERVAL = 1.0
"""Seconds; how long progress that was held back may stay unseen."""

logger = logging.getLogger(__name__)

Runner = Callable[[Claim, Context, StopSignal], Outcome]


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """What a child is told at its start; picklable."""

    slot: int
    runner: str
    """Dotted path of a `Runner`."""
    environment: Mapping[str, str]
    databases: Mapping[str, Any] | None
    """The parent's connection settings: in tests they name the test databases."""
    has_fork_server: bool


class Child:
    """This process as the parent knows it."""

    def __init__(self, settings: ChildSettings, board: Board, channel: Connection) -> None:
        self.pid = os.getpid()
        self._settings = settings
        self._board = board
        self._channel = channel
        self._run: ChildRun | None = None
        self._runner: Runner | None = None
        self._announced = False
        self._handlers: dict[signal.Signals, Any] = {}
        self._folder, self._umask = os.getcwd(), os.umask(0o22)
        os.umask(self._umask)

    def protect(self) -> None:
        """Own process group, own signals, and no life after the parent's."""
        with contextlib.suppress(PermissionError):  # a group leader already
            os.setsid()
        self._board.pid = self.pid
        self._take_signals()
        if self._settings.has_fork_server:
            # Without the fork server the parent hears nothing of this process any more, and takes it for dead. Not set
            # where the parent started us itself: the signal comes when the starting thread ends, not the process.
            die_with_parent(signal.SIGKILL)
        # The jobs' own child processes start as they would anywhere else, not from the scheduler's fork server.
        multiprocessing.set_start_method(None, force=True)
        threading.Thread(target=self._watch, name="jobs-parent-watch", daemon=True).start()

    def set_up(self) -> None:
        """Django with the parent's environment and databases; raises whatever the project's code raises."""
        os.environ.clear()
        os.environ.update(self._settings.environment)
        if self._settings.databases is not None:
            connections.settings.update(self._settings.databases)
        django.setup()
        self._runner = import_string(self._settings.runner)
        self._take_signals()  # again: the project's code may have its own ideas
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def announce(self, state: int) -> None:
        self._announced = True
        self._board.state = state
        self._tell(message.Ready(self._settings.slot))

    def run(self, claim: Claim) -> str:
        """Outcome and newest progress as `message.outcome_text`.

        UNSTARTED when the run was asked to stop before the body began.
        """
        assert self._runner is not None
        self._clean_up()
        run = self._run = ChildRun(claim, self._tell)
        self._board.began_pid = self.pid
        self._board.began = claim.attempt_id
        if self._board.stop_asked(claim.attempt_id) is not None:
            self._run = None
            return message.outcome_text(Outcome(Ending.UNSTARTED), None)
        self._tell(message.Started(claim.attempt_id))
        outcome = self._call(self._runner, run)
        if os.getpid() != self.pid:
            os._exit(0)  # the body forked, and the copy came back: there is one child, and it is not this one
        outcome = verdict.settled(claim, outcome, self._board.stop_asked(claim.attempt_id))
        self._run = None
        progress = run.take_progress()
        try:
            return message.outcome_text(outcome, progress)
        except (TypeError, ValueError, RecursionError) as error:
            return message.outcome_text(verdict.not_plain(claim, error), progress)

    def _call(self, runner: Runner, run: ChildRun) -> Outcome:
        outcome: Outcome | None = None
        try:
            run.interruptible = True
            run.context.check()  # the signal may have come just before
            outcome = runner(run.claim, run.context, run.stop)
            run.interruptible = False
        except BaseException as error:  # noqa: BLE001 - JobCancelled may arrive anywhere, and a runner may have bugs
            run.interruptible = False
            if outcome is None:
                return Outcome(Ending.FAILED, failure=describe(error))
        return outcome

    def _take_signals(self) -> None:
        # Not SIG_IGN for Ctrl-C: the programs that a job starts would inherit it.
        signal.signal(signal.SIGINT, _ignore)
        signal.signal(signal.SIGTERM, self._on_terminate)

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        run = self._run
        if not self._announced:
            os._exit(0)  # an exception could be taken for a fault of the project's code, in whose imports we may be
        if run is None:
            if self._board.began and self._board.stop_asked(self._board.began) is not None:
                return  # the parent meant the body that has just ended; what it wants gone it kills
            raise SystemExit(0)  # pebble ends idle children so; an exception gives its locks back
        reason = self._board.stop_asked(run.claim.attempt_id)
        if reason is None or run.signalled:
            return  # not from the parent: systemd signals every process of a unit, and the grace time is the worker's
        run.signalled = True
        run.stop.fire(reason)
        if run.interruptible and not run.stop.body_over:
            run.interruptible = False
            raise JobCancelled(f"job {run.claim.job_id}: asked to stop ({reason})")

    def _clean_up(self) -> None:
        """What the body before may have left behind and would hit the next one."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number, handler in self._handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        os.umask(self._umask)
        with contextlib.suppress(OSError):
            os.chdir(self._folder)

    def _watch(self) -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        while not wait([parent.sentinel], WATCH_INTERVAL):
            run = self._run
            if run is not None:
                run.flush()
                # The signal may be late: a main thread in C code, a job that took the handler away.
                reason = self._board.stop_asked(run.claim.attempt_id)
                if reason is not None:
                    run.stop.fire(reason)
        os.killpg(self.pid, signal.SIGKILL)

    def _tell(self, said: message.Message) -> None:
        # A full pipe, or a job that closed every descriptor: it was only a hint.
        with contextlib.suppress(OSError):
            os.write(self._channel.fileno(), message.line(said))


_child: Child | None = None


def prepare(settings: ChildSettings, board: Board, channel: Connection) -> None:
    """Set this process up; never raises, since pebble would start the next one at once, for ever."""
    global _child
    _child = Child(settings, board, channel)
    _child.protect()
    os.register_at_fork(before=_hold_sigterm, after_in_parent=_release_sigterm, after_in_child=_be_a_stranger)
    try:
        _child.set_up()
    except BaseException:
        logger.exception("a child process of the scheduler could not be set up")
        _child.announce(UNUSABLE)
    else:
        _child.announce(READY)


def run(claim: Claim) -> str:
    """Run one body in this process, which is prepared; see `Child.run`."""
    assert _child is not None
    return _child.run(claim)


def _hold_sigterm() -> None:
    # Sent right after the fork, it would meet our handler in the copy and be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _release_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _be_a_stranger() -> None:
    """In a process that the job forked: signals mean again what its author expects."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _release_sigterm()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Ctrl-C is the scheduler's to handle."""
