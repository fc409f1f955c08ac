"""Run coroutine bodies on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry
from jobs.domain.stop import StopReason
from jobs.engine.body import arun, thrown_away
from jobs.engine.executors import verdict
from jobs.engine.executors.abandoned import wind_up
from jobs.engine.executors.opening import opened
from jobs.engine.executors.port import Listener
from jobs.engine.executors.run import Run
from jobs.engine.executors.runs import Runs
from jobs.engine.timekeeper import Timekeeper

logger = logging.getLogger(__name__)


class AsyncExecutor:
    """Bodies beyond the slots wait in the loop for a place, in the order they came."""

    def __init__(
        self, slots: int, listener: Listener, registry: Registry, timekeeper: Timekeeper, *, cancel_grace: float
    ) -> None:
        self.slots = slots
        self._listener = listener
        self._registry = registry
        self._timekeeper = timekeeper
        self._cancel_grace = cancel_grace
        self._runs = Runs(listener, goes_on="task")
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._places: asyncio.Semaphore | None = None
        self._stopping = False

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        if self._thread is None:
            self._stopping = False
            self._loop = asyncio.new_event_loop()
            self._places = asyncio.Semaphore(self.slots)
            self._thread = threading.Thread(target=self._run_loop, name="jobs-async", daemon=True)
            self._thread.start()

    def submit(self, claim: Claim) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._create_task, self._runs.add(claim))

    def withdraw(self, attempt_id: int) -> bool:
        return self._runs.withdraw(attempt_id)

    def stop_run(self, attempt_id: int, reason: StopReason) -> bool:
        """The task is cancelled; one that swallows it ends on paper after the grace, and lingers."""
        one = self._runs.find(attempt_id)
        if one is None or self._loop is None or not one.stop.fire(reason):
            return False
        self._loop.call_soon_threadsafe(self._cancel_task, one)
        self._timekeeper.after(self._cancel_grace, lambda: self._runs.end_on_paper(one))
        return True

    def stop(self, deadline: float) -> None:
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        for one in self._runs.all():
            one.stop.fire(StopReason.INTERRUPT)
            loop.call_soon_threadsafe(self._cancel_task, one)
        while self._runs and time.monotonic() < deadline:
            time.sleep(0.01)
        for one in self._runs.all():
            self._runs.end_on_paper(one)
        self._stopping = True
        # What does not end has ended on paper; asyncio would tell of each task that goes with the loop.
        loop.set_exception_handler(lambda loop, context: None)
        loop.call_soon_threadsafe(loop.stop)
        # A body that blocks the loop cannot be stopped; the thread is a daemon and dies with the process.
        thread.join(max(0.5, deadline - time.monotonic()))
        self._thread = None

    def _run_loop(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        while not self._stopping:
            try:
                loop.run_forever()
            except BaseException:
                # SystemExit in a task that a job started ends run_forever; the jobs on the loop go on.
                logger.exception("the event loop was interrupted by a job; it goes on")
        wind_up(loop)
        loop.close()

    def _create_task(self, one: Run) -> None:
        # A fresh context per job: language, time zone and context variables never reach the next one.
        task = contextvars.Context().run(asyncio.ensure_future, self._execute(one))
        self._tasks[one.claim.attempt_id] = task
        task.add_done_callback(lambda _: self._forget(one))

    def _cancel_task(self, one: Run) -> None:
        task = self._tasks.get(one.claim.attempt_id)
        if task is not None and one.begun:
            task.cancel()

    def _forget(self, one: Run) -> None:
        self._tasks.pop(one.claim.attempt_id, None)
        self._runs.drop(one)

    async def _execute(self, one: Run) -> None:
        assert self._places is not None
        async with self._places:
            if not one.begin():
                return
            try:
                body = opened(one, self._registry, self._listener)
                outcome = body if isinstance(body, Outcome) else await arun(body)
            except asyncio.CancelledError:
                logger.debug("%s was cancelled outside its body", one.claim)
                outcome = verdict.stopped(one.claim, one.stop.reason)
            except BaseException:  # a bug of ours; whether the body ran is not known
                if thrown_away():
                    return
                logger.exception("%s: its run failed", one.claim)
                outcome = Outcome(Ending.LOST, reason="the async executor failed")
            if one.end():
                self._listener.finished(one.claim, outcome)
            else:
                self._listener.returned(one.claim)
