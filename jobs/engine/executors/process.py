"""Runs jobs in child processes that can be stopped whatever they do."""

from __future__ import annotations

import atexit
import copy
import logging
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.stop import StopReason
from jobs.engine.executors import verdict
from jobs.engine.executors.child import ChildSettings
from jobs.engine.executors.message import Progressed, Ready, Started, read_line
from jobs.engine.executors.pool_of_one import PoolOfOne
from jobs.engine.executors.port import Listener
from jobs.engine.executors.process_run import ProcessRun
from jobs.engine.executors.slot import ProcessSlot

RUNNER = "jobs.engine.body.run_claim"
KILL_AFTER = 5.0
# The guard comes first. None of them needs settings, and no code of the project runs in the fork server.
PRELOADED = ["jobs.engine.executors.fork_server", "jobs.engine.executors.child", "django.db.models", "django.forms"]
LAST_WAIT = 5.0
"""Seconds past its deadline that `stop` may take to bury what it has killed."""

logger = logging.getLogger(__name__)


class ProcessExecutor:
    """One child process per slot, each in a process group of its own; see `slot` and `child`.

    A run that is asked to stop gets JobCancelled in its main thread. If that does not end it within `kill_after`
    seconds, or if it has lost its lease, its process group is killed. The group of a run that ended by a request, or
    whose child died, is always killed: programs that the body has started go too, unless they moved to a session of
    their own. What a body leaves behind after a success or an exception stays.
    """

    def __init__(self, slots: int, listener: Listener, *, kill_after: float = KILL_AFTER, runner: str = RUNNER) -> None:
        self.slots = slots
        self._listener = listener
        self._kill_after = kill_after
        self._runner = runner
        self._context = _context()
        self._lock = threading.Lock()
        self._runs: dict[int, ProcessRun] = {}
        self._waiting: deque[ProcessRun] = deque()
        self._all: list[ProcessSlot] = []
        self._idle: list[ProcessSlot] = []
        self._stopping = False
        self._ears: Connection | None = None
        self._mouth: Connection | None = None
        self._hearing = threading.Thread(target=self._hear, name="jobs-process-messages", daemon=True)

    @property
    def alive(self) -> bool:
        return self._hearing.is_alive() and all(slot.alive for slot in self._all)

    def start(self) -> None:
        """Starts the first child; the others come with the first claims that need them."""
        with self._lock:
            if self._all or self._stopping:
                return
            self._ears, self._mouth = self._context.Pipe(duplex=False)
            os.set_blocking(self._mouth.fileno(), False)  # a child never waits for us to read
            self._all = [ProcessSlot(number, self._launch, self._freed) for number in range(self.slots)]
            self._idle = self._all[::-1]  # the warm ones are taken first
        atexit.register(self.stop, 0.0)  # before pebble's own, which waits for stubborn children
        self._hearing.start()
        for slot in self._all:
            slot.start(warm=slot.number == 0)

    def submit(self, claim: Claim) -> None:
        """Never blocks. A claim beyond the free slots waits."""
        run = ProcessRun(claim, self._listener)
        with self._lock:
            refused = self._stopping or not self._all
            if not refused:
                self._runs[claim.attempt_id] = run
                if self._idle:
                    self._idle.pop().give(run)
                else:
                    self._waiting.append(run)
        if refused:
            run.finish(Outcome(Ending.UNSTARTED, reason="the process executor does not run"))

    def withdraw(self, attempt_id: int) -> bool:
        """Whether the claim was still waiting; then its body will not begin, and `finished` is not called."""
        with self._lock:
            run = self._runs.get(attempt_id)
            if run is None or run not in self._waiting:
                return False  # it has a slot, and its child may be about to begin
            self._waiting.remove(run)
            del self._runs[attempt_id]
            return True

    def stop_run(self, attempt_id: int, reason: StopReason) -> bool:
        """Ask one run to stop; False when it is unknown or has ended."""
        with self._lock:
            run = self._runs.get(attempt_id)
        patience = 0.0 if reason is StopReason.LEASE_LOST else self._kill_after
        return run is not None and run.ask_to_stop(reason, time.monotonic() + patience)

    def stop(self, deadline: float) -> None:
        """Interrupt what runs, kill at `deadline` (monotonic seconds) what still does, and leave no process behind.

        Only multiprocessing's own fork server and resource tracker stay, which serve the whole process.
        """
        with self._lock:
            first, self._stopping = not self._stopping, True
            slots, runs, waiting = self._all, list(self._runs.values()), list(self._waiting)
            self._waiting.clear()
        for run in waiting:
            run.finish(verdict.forestalled(run.stop.reason or StopReason.INTERRUPT))
        for run in runs:
            run.ask_to_stop(StopReason.INTERRUPT, deadline)
            run.kill_by(max(deadline, time.monotonic()))
        if first:
            for slot in slots:
                slot.end()
        give_up_at = max(deadline, time.monotonic()) + LAST_WAIT
        for slot in slots:
            slot.join(max(0.0, give_up_at - time.monotonic()))
        if first and slots:
            self._stop_hearing()
            atexit.unregister(self.stop)

    def _freed(self, slot: ProcessSlot, run: ProcessRun) -> None:
        with self._lock:
            self._runs.pop(run.claim.attempt_id, None)
            if self._waiting:
                slot.give(self._waiting.popleft())
            else:
                self._idle.append(slot)

    def _launch(self, slot: int) -> PoolOfOne:
        assert self._mouth is not None
        settings = ChildSettings(
            slot=slot,
            runner=self._runner,
            environment=dict(os.environ),
            databases=_databases(),
            has_fork_server=self._context.get_start_method() == "forkserver",
        )
        return PoolOfOne(self._context, settings, self._mouth)

    def _hear(self) -> None:
        """Until an empty line says that it is enough."""
        assert self._ears is not None
        rest = b""
        while True:
            *lines, rest = (rest + os.read(self._ears.fileno(), 65536)).split(b"\n")
            for line in lines:
                if not line and self._stopping:
                    return
                try:
                    self._understand(line)
                except Exception:
                    logger.exception("a message of a child process was not dealt with")

    def _understand(self, line: bytes) -> None:
        match read_line(line):
            case Ready(slot) if 0 <= slot < len(self._all):
                self._all[slot].look()
            case Started(attempt_id) if run := self._runs.get(attempt_id):
                run.started()
            case Progressed(attempt_id, progress) if run := self._runs.get(attempt_id):
                run.progressed(progress)

    def _stop_hearing(self) -> None:
        assert self._ears is not None
        assert self._mouth is not None
        os.set_blocking(self._mouth.fileno(), True)
        os.write(self._mouth.fileno(), b"\n\n")
        self._hearing.join(LAST_WAIT)
        self._ears.close()
        self._mouth.close()


def _context() -> BaseContext:
    # Named, since the default differs between platforms and between Python 3.13 and 3.14.
    if sys.platform == "darwin":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _databases() -> Mapping[str, Any] | None:
    """The connection settings as they are now, or None when they cannot be handed over."""
    databases = copy.deepcopy(dict(connections.settings))
    try:
        pickle.dumps(databases)
    except Exception:  # pickling calls whatever an option's class defines
        logger.warning("the database settings do not pickle; child processes read their own", exc_info=True)
        return None
    return databases
