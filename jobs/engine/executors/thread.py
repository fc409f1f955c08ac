"""Run bodies in a pool of threads, which cannot be killed: a run that will not stop ends on paper and lingers."""

from __future__ import annotations

import logging
import queue
import threading
import time

from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry
from jobs.domain.stop import StopReason
from jobs.engine.body import run
from jobs.engine.executors.opening import opened
from jobs.engine.executors.port import Listener
from jobs.engine.executors.run import Run
from jobs.engine.executors.runs import Runs
from jobs.engine.timekeeper import Timekeeper

CONNECTED_IDLE_SECONDS = 10.0

logger = logging.getLogger(__name__)


class ThreadExecutor:
    def __init__(
        self, slots: int, listener: Listener, registry: Registry, timekeeper: Timekeeper, *, cancel_grace: float
    ) -> None:
        self.slots = slots
        self._listener = listener
        self._registry = registry
        self._timekeeper = timekeeper
        self._cancel_grace = cancel_grace
        self._inbox: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._runs = Runs(listener, goes_on="call")
        self._threads: list[threading.Thread] = []

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        for number in range(len(self._threads), self.slots):
            # Daemons: a thread stuck in a call must not keep the process from ending.
            thread = threading.Thread(target=self._work, name=f"jobs-thread-{number + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(self, claim: Claim) -> None:
        self._inbox.put(self._runs.add(claim))

    def withdraw(self, attempt_id: int) -> bool:
        return self._runs.withdraw(attempt_id)

    def stop_run(self, attempt_id: int, reason: StopReason) -> bool:
        """A function that asks its context can end by itself; at its timeout, or after the grace, it lingers."""
        one = self._runs.find(attempt_id)
        if one is None or not one.stop.fire(reason):
            return False
        if reason in (StopReason.TIMEOUT, StopReason.LEASE_LOST):
            self._runs.end_on_paper(one)
        elif reason is StopReason.CANCEL:
            self._timekeeper.after(self._cancel_grace, lambda: self._runs.end_on_paper(one))
        return True

    def stop(self, deadline: float) -> None:
        for one in self._runs.all():
            one.stop.fire(StopReason.INTERRUPT)
        for _ in self._threads:
            self._inbox.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()
        for one in self._runs.all():
            self._runs.end_on_paper(one)

    def _work(self) -> None:
        while (one := self._next()) is not None:
            try:
                self._execute(one)
            except BaseException:  # the slot must live on
                logger.exception("%s: the thread executor failed", one.claim)
            finally:
                self._runs.drop(one)
            del one
        connections.close_all()

    def _next(self) -> Run | None:
        try:
            return self._inbox.get(timeout=CONNECTED_IDLE_SECONDS)
        except queue.Empty:
            # An idle slot holds no session of the database, whatever CONN_MAX_AGE says for the busy ones.
            connections.close_all()
            return self._inbox.get()

    def _execute(self, one: Run) -> None:
        if not one.begin():
            return
        outcome = self._outcome(one)
        if one.end():
            self._listener.finished(one.claim, outcome)
        else:
            self._listener.returned(one.claim)

    def _outcome(self, one: Run) -> Outcome:
        try:
            body = opened(one, self._registry, self._listener)
            return body if isinstance(body, Outcome) else run(body)
        except BaseException:  # a bug of ours; whether the body ran is not known
            logger.exception("%s: its run failed", one.claim)
            return Outcome(Ending.LOST, reason="the thread executor failed")
