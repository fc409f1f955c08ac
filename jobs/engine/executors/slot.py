"""One place to run a process job now."""

from __future__ import annotations

import concurrent.futures
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from pebble import ProcessExpired

from jobs.domain.outcome import Ending, Outcome
from jobs.engine.executors import verdict
from jobs.engine.executors.message import read_outcome
from jobs.engine.executors.pool_of_one import PoolOfOne, is_alive
from jobs.engine.executors.process_run import ProcessRun

LAUNCHES = 3
"""Children that may die or fail to get ready before a claim is handed back."""
LAUNCH_SECONDS = 60.0
"""How long a child may take to get ready, and to begin a body that it was given."""
LOOK_INTERVAL = 0.25
"""Seconds between two looks at a child. pebble reports no child that exits with 0."""
VERDICT_SECONDS = 0.5
"""How long after a child's death pebble may take to say its exit code."""
RELAUNCH_PAUSE = 1.0

logger = logging.getLogger(__name__)


class NoChild(Exception):
    """There is no child that could run a body."""


class ProcessSlot:
    """A thread with a child process. It runs one claim at a time, and replaces the child when that is used up."""

    def __init__(
        self, number: int, launch: Callable[[int], PoolOfOne], freed: Callable[[ProcessSlot, ProcessRun], None]
    ) -> None:
        self.number = number
        self._launch = launch
        self._freed = freed
        self._inbox: queue.SimpleQueue[ProcessRun | None] = queue.SimpleQueue()
        self._run: ProcessRun | None = None
        self._pool: PoolOfOne | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"jobs-process-{number}", daemon=True)
        self._warm = False

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self, *, warm: bool) -> None:
        """`warm`: start the child now, and not with the first claim."""
        self._warm = warm
        self._thread.start()

    def give(self, run: ProcessRun) -> None:
        self._inbox.put(run)

    def look(self) -> None:
        """The child has said something."""
        run = self._run
        if run is not None:
            run.changed.set()

    def end(self) -> None:
        """Take no more claims."""
        self._stopping.set()
        self._inbox.put(None)

    def join(self, timeout: float) -> None:
        """Wait until the child is gone; past `timeout` seconds it is killed from here."""
        self._thread.join(timeout)
        pool = self._pool
        if self._thread.is_alive() and pool is not None:
            pool.kill()

    def _serve(self) -> None:
        if self._warm:
            self._replace_child()
        while (run := self._inbox.get()) is not None:
            self._run = run
            outcome = self._outcome(run)
            self._run = None
            self._freed(self, run)  # first: the listener may have the next claim at once
            self._tell(run, outcome)
            if self._pool is None and not self._stopping.is_set():
                self._replace_child()
        self._kill_child()

    def _tell(self, run: ProcessRun, outcome: Outcome) -> None:
        try:
            run.finish(outcome)
        except Exception:  # the slot must live on
            logger.exception("%s: its outcome was not taken", run.claim)

    def _outcome(self, run: ProcessRun) -> Outcome:
        try:
            for _ in range(LAUNCHES):
                try:
                    return self._carry_out(run, self._ready_child(run))
                except NoChild as error:
                    logger.warning("%s: %s", run.claim, error)
                    pool = self._pool
                    self._kill_child()
                    if pool is not None and pool.has_begun(run.claim.attempt_id):
                        run.started()  # after all, while we gave it up
                        return Outcome(Ending.LOST, reason="its child process was given up as it began")
                    self._stopping.wait(RELAUNCH_PAUSE)
            logger.error("%s is handed back: no child process would run it", run.claim)
            return Outcome(Ending.UNSTARTED, reason="no child process would run it")
        except Exception:
            # A bug of ours; whether the body ran is not known.
            logger.exception("%s: its slot failed", run.claim)
            self._kill_child()
            return Outcome(Ending.LOST, reason="the process executor failed")

    def _ready_child(self, run: ProcessRun) -> PoolOfOne:
        give_up_at = time.monotonic() + LAUNCH_SECONDS
        while True:
            pool = self._pool or self._replace_child()
            if pool is None or not pool.usable or time.monotonic() > give_up_at:
                raise NoChild("a child process did not get ready")
            if pool.ready or run.stop.reason is not None:
                return pool
            _wait(run)

    def _carry_out(self, run: ProcessRun, pool: PoolOfOne) -> Outcome:
        if run.stop.reason is not None:
            return verdict.forestalled(run.stop.reason)
        refusal = run.may_begin(pool.board)
        if refusal is not None:
            return refusal
        child = pool.board.pid
        try:
            future = pool.run(run.claim)
        except RuntimeError as error:
            raise NoChild("a child process died while it was idle") from error
        future.add_done_callback(lambda _: run.changed.set())
        give_up_at = time.monotonic() + LAUNCH_SECONDS
        while not future.done():
            if run.kill_is_due:
                return self._stopped(run)
            if pool.has_begun(run.claim.attempt_id):
                run.started()
                if not is_alive(pool.board.began_pid):
                    concurrent.futures.wait([future], VERDICT_SECONDS)
                    break
            elif not is_alive(child):
                # It may have taken the claim with it: pebble neither tells of an exit with 0 nor gives it again.
                raise NoChild("a child process died before it began")
            elif time.monotonic() > give_up_at:
                raise NoChild(f"a child process did not begin within {LAUNCH_SECONDS:g} s")
            _wait(run)
        return self._end(run, pool, future)

    def _end(self, run: ProcessRun, pool: PoolOfOne, future: Future[str]) -> Outcome:
        """What to make of a run whose child has answered, or died."""
        exit_code = 0
        if future.done():
            error = future.exception()
            if error is None:
                return self._answer(run, future.result())
            if not isinstance(error, ProcessExpired):
                logger.warning("%s: pebble gave up: %r", run.claim, error)
            exit_code = getattr(error, "exitcode", 0) or 0
        if not pool.has_begun(run.claim.attempt_id):
            raise NoChild("a child process died before it began")
        if run.stop.reason is not None:
            return self._stopped(run)
        pid = pool.board.began_pid
        run.started()
        self._kill_child()
        return verdict.died(pid, exit_code)

    def _answer(self, run: ProcessRun, text: str) -> Outcome:
        outcome, progress = read_outcome(text)
        if outcome.ending is Ending.UNSTARTED:
            reason = run.stop.reason
            return outcome if reason is None else verdict.forestalled(reason)
        run.started()
        if progress is not None:
            run.progressed(progress)
        if run.stop.reason is not None and outcome.ending is not Ending.COMPLETED:
            self._kill_child()  # with what the body has started and could not take along
        return outcome

    def _stopped(self, run: ProcessRun) -> Outcome:
        assert run.stop.reason is not None
        pool = self._pool
        self._kill_child()
        if pool is not None and pool.has_begun(run.claim.attempt_id):
            run.started()
            return verdict.stopped(run.claim, run.stop.reason)
        return verdict.forestalled(run.stop.reason)

    def _replace_child(self) -> PoolOfOne | None:
        try:
            self._pool = self._launch(self.number)
        except (OSError, EOFError, RuntimeError):
            logger.exception("no child process could be started for slot %s", self.number)
        return self._pool

    def _kill_child(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.kill()


def _wait(run: ProcessRun) -> None:
    """Until something happens to the run, or it is time to look at the child."""
    patience = LOOK_INTERVAL
    if run.kill_at is not None:
        patience = max(0.0, min(patience, run.kill_at - time.monotonic()))
    run.changed.wait(patience)
    run.changed.clear()
