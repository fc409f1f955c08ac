"""Own the agents of one process: start them in order, stop them in reverse, the recorder last.

Over 300 lines, since what agents tell each other is wired here and nowhere else.
"""

from __future__ import annotations

import logging
import threading
import time

from django.db import Error as DatabaseError

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.failure import system_failure
from jobs.domain.move import Listener, listeners
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry, registry
from jobs.domain.stop import StopReason
from jobs.domain.verdict import closing_for
from jobs.engine import log_capture
from jobs.engine.connection import use_engine_connection
from jobs.engine.dispatcher import Dispatcher
from jobs.engine.executors.fleet import Fleet
from jobs.engine.housekeeper import Housekeeper
from jobs.engine.in_flight import Held, InFlight
from jobs.engine.lease_keeper import LeaseKeeper
from jobs.engine.loop import Loop
from jobs.engine.options import EngineOptions
from jobs.engine.planner import Planner
from jobs.engine.recorder import HandBack, Recorder
from jobs.engine.stuck_slots import StuckSlots
from jobs.engine.timekeeper import Timekeeper
from jobs.engine.waker import Waker
from jobs.store.count import Able, anything_due, anything_unfinished, left_behind
from jobs.store.database import database
from jobs.store.workers import WorkerCard, beat

logger = logging.getLogger(__name__)

INTERRUPT_GRACE = 0.8
"""Seconds that runs get to end by themselves once the grace is over."""
NAMED_RUNS = 20
"""In one log line."""
LAST_WRITES = 5.0
LAST_WORDS = 2.0
"""Seconds that agents which write nothing more get together, also where the database does not answer."""
LOOK_WHETHER_DONE_EVERY = 0.05


class Scheduler:
    """Runs inside any process. `start` and `stop` are safe twice; after `stop` make a new one."""

    def __init__(self, options: EngineOptions, tasks: Registry = registry) -> None:
        self.options = options
        self._registry = tasks
        self._timekeeper = Timekeeper()
        self._state = threading.Lock()
        self._started = self._stopped = False
        self._hurry = False
        self._idle = threading.Event()
        self._own_listeners: list[Listener] = []
        self.in_flight = InFlight(
            registry=tasks,
            timekeeper=self._timekeeper,
            start_within=options.lease - min(options.start_margin, options.lease / 4),
            on_ended=self._ended,
            on_timeout=lambda claim: self._stop_run(claim, StopReason.TIMEOUT),
            on_progress=lambda: self._lease_keeper.note_progress(),
            on_returned=self._returned,
        )
        self._stuck_slots = StuckSlots(options.slots, self.in_flight.lingering)
        self._fleet = Fleet(options, self.in_flight, tasks, self._timekeeper)
        card = WorkerCard(
            id=options.worker_id,
            name=options.name,
            host=options.host,
            pid=options.pid,
            role=options.role,
            version=options.version,
            queues=tuple(options.queues) if options.claims else (),
            slots=dict(options.slots) if options.claims else {},
        )
        self._card = card
        self._recorder = Recorder(
            options.alias,
            options.worker_id,
            options.name,
            linger_seconds=options.lease,
            soon=options.poll,
            written=self.in_flight.forget,
            prepare=self._prepare,
        )
        self._dispatcher = Dispatcher(
            options,
            self.in_flight,
            self._fleet.by_execution,
            backlog=lambda: self._recorder.backlog,
            cancel=self._cancel_running,
            prepare=self._prepare,
        )
        self._lease_keeper = LeaseKeeper(
            options.alias,
            card,
            self.in_flight,
            lease=options.lease,
            renew=options.renew,
            back_within=options.back_within,
            on_cancel=lambda held: self._cancel_running(held.claim.job_id),
            on_lost=self._lost,
            is_asleep=lambda: self._dispatcher.asleep,
            prepare=self._prepare,
        )
        self._housekeeper = Housekeeper(options, prepare=self._prepare)
        self._planner = Planner(options, prepare=self._prepare)
        self._waker = Waker(
            options.alias, wake=self._dispatcher.wake, cancelled=self._cancel_running, prepare=self._prepare
        )

    # -- start and stop

    def start(self) -> None:
        with self._state:
            if self._started:
                return
            self._started = True
        for listener in self._own_listeners:
            listeners.remove(listener)
            listeners.add(listener)
        log_capture.install()
        # Before the first round: a submit must find the mark that the dispatcher leaves on this row.
        beat(database(self.options.alias), self._card)
        self._timekeeper.start()
        self._recorder.start()
        self._lease_keeper.start()
        self._fleet.start()
        if self.options.keeps_house:
            self._housekeeper.start()
            self._planner.start()
        self._dispatcher.start()
        self._waker.start()

    def stop(self, cancel_running: bool = False, timeout: float | None = None) -> None:
        """Claim nothing more, let jobs finish for `timeout` seconds (default: the grace), then interrupt them and
        hand them back. `cancel_running=True` interrupts at once. A second call shortens the grace to nothing."""
        if cancel_running or self._stopped:
            self._hurry = True
        with self._state:
            if not self._started:
                self._forget_listeners()
            if not self._started or self._stopped:
                return
            self._stopped = True
        # From the request on: a claim that gets no answer takes its time out of the grace, not on top of it.
        grace_ends_at = time.monotonic() + (self.options.grace if timeout is None else timeout)
        self._planner.loop.ask_to_stop()  # its schedules are due for others too
        self._dispatcher.stop(time.monotonic() + LAST_WRITES)
        self._withdraw_waiting()
        self._wait_for_runs(grace_ends_at)
        self._interrupt_runs()
        self._waker.loop.ask_to_stop()  # cancel requests are heard until here
        self._housekeeper.loop.ask_to_stop()
        self._recorder.stop(time.monotonic() + LAST_WRITES)
        self._lease_keeper.loop.ask_to_stop()
        deadline = time.monotonic() + LAST_WORDS
        for agent in (self._lease_keeper, self._waker, self._planner, self._housekeeper, self._timekeeper):
            agent.stop(deadline)
        self._forget_listeners()

    def hurry(self) -> None:
        """End the grace of a stop under way, or to come. Only sets a flag: safe in a signal handler."""
        self._hurry = True

    def join(self, timeout: float | None = None, *, due_only: bool = False) -> bool:
        """Whether, within `timeout` seconds, nothing was in flight and nothing waited in the queues served here
        (`due_only`: nothing was due that this process can run, and nothing ran elsewhere)."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while True:
            self._idle.clear()
            # Exhausted first: what has begun is held by then.
            if self.exhausted:
                return True
            if not self.in_flight.holds_anything and not self._anything_left(due_only):
                return True
            if self._stopped or (give_up_at is not None and time.monotonic() >= give_up_at):
                return False
            self._idle.wait(LOOK_WHETHER_DONE_EVERY)

    def _anything_left(self, due_only: bool) -> bool:
        db, able = database(self.options.alias), self._able()
        try:
            return anything_due(db, able) if due_only else anything_unfinished(db, able.queues)
        except DatabaseError as error:
            if db.connection.in_atomic_block:
                raise
            # Asked many times a second; the agents say it once.
            logger.debug("whether anything is left cannot be said now: %s", error)
            db.connection.close_if_unusable_or_obsolete()
            return True

    @property
    def may_claim(self) -> bool:
        """Once a stop has begun, only until the round under way is over."""
        return self._dispatcher.loop.alive

    @property
    def exhausted(self) -> bool:
        """Whether `max_jobs` have begun and ended."""
        return self._dispatcher.exhausted and not self.in_flight.holds_anything

    def left_behind(self) -> tuple[dict[Execution, int], dict[str, int]]:
        """Pending jobs that this process cannot run: by execution without slots here, by task unknown here."""
        return left_behind(database(self.options.alias), self._able())

    def _able(self) -> Able:
        return Able(list(self.options.queues), list(self._fleet.by_execution), self._dispatcher.unknown_tasks)

    @property
    def peak_running(self) -> int:
        """The most bodies that ran at once in this process."""
        return self.in_flight.peak_running

    @property
    def dead_loops(self) -> list[str]:
        """Names of agents whose thread has ended although nobody stopped them: the process must not live on."""
        if not self._started or self._stopped:
            return []
        dead = [loop.name for loop in self._loops() if not loop.alive]
        dead += self._fleet.dead
        return dead if self._timekeeper.alive else [*dead, "timekeeper"]

    def add_listener(self, listener: Listener) -> None:
        """`listener(move)` hears of every move that this process makes, after its commit, until `stop`."""
        self._own_listeners.append(listener)
        listeners.add(listener)

    # -- what agents tell each other

    def _ended(self, held: Held, outcome: Outcome, lingers: bool) -> None:
        claim = held.claim
        if held.lost:
            if not lingers:
                self.in_flight.drop(held)
        elif outcome.ending is Ending.UNSTARTED:
            self._dispatcher.count(-1)
            self._recorder.put(HandBack(claim.attempt_id))
        elif outcome.ending is Ending.TASK_NOT_FOUND:
            self._task_not_found(held)
        else:
            # Where the process ends with us no call goes on after an interruption.
            lingers = lingers and not (self.options.process_ends and outcome.ending is Ending.INTERRUPTED)
            self._recorder.put(
                closing_for(claim, outcome, started_at=held.started_at, lingers=lingers, progress=held.progress)
            )
        if lingers and not self._stopped:
            self._stuck_slots.look(claim.execution)
        self._dispatcher.slot_freed(claim.execution)
        if not self._idle.is_set():
            self._idle.set()

    def _task_not_found(self, held: Held) -> None:
        claim = held.claim
        since = claim.unknown_since
        waited = (claim.claimed_at - since).total_seconds() if since is not None else 0.0
        if since is None or waited < self.options.task_not_found_after:
            # Not when it fails: then a backlog of its jobs fails as fast as it is claimed.
            self._dispatcher.avoid(claim.task)
            logger.warning("%s: no task has this name here; handed back for a worker that knows it", claim)
            self._dispatcher.count(-1)
            self._recorder.put(HandBack(claim.attempt_id, task_unknown=True))
            return
        message = (
            f"task not found: no worker knew {claim.task} for {waited:.0f} s. Deploy its code, then requeue the job."
        )
        outcome = Outcome(
            Ending.TASK_NOT_FOUND, failure=system_failure("jobs.TaskNotFound", message), reason="task not found"
        )
        self._recorder.put(closing_for(claim, outcome, started_at=None))

    def _returned(self, held: Held) -> None:
        self._lease_keeper.note_returned(held)
        self._stuck_slots.look(held.claim.execution)
        self._dispatcher.slot_freed(held.claim.execution)

    def _cancel_running(self, job_id: int) -> None:
        attempt_id = self.in_flight.request_cancel(job_id)
        if attempt_id is not None:
            self._fleet.stop_run(attempt_id, StopReason.CANCEL)

    def _lost(self, held: Held) -> None:
        held.lost = True
        logger.warning("%s: the lease is lost; its run is stopped and its outcome discarded", held.claim)
        self._stop_run(held.claim, StopReason.LEASE_LOST)

    def _stop_run(self, claim: Claim, reason: StopReason) -> None:
        self._fleet.stop_run(claim.attempt_id, reason)

    # -- the parts of a stop

    def _withdraw_waiting(self) -> None:
        for claim in self.in_flight.waiting_longer_than(0.0):
            if self._fleet.withdraw(claim):
                self.in_flight.finished(claim, Outcome(Ending.UNSTARTED))

    def _wait_for_runs(self, deadline: float) -> None:
        while self.in_flight.unfinished() and not self._hurry and time.monotonic() < deadline:
            time.sleep(0.02)

    def _interrupt_runs(self) -> None:
        left = [held.claim for held in self.in_flight.held() if held.ended_at is None]
        for claim in left:
            self._stop_run(claim, StopReason.INTERRUPT)
        if left:
            logger.info("the grace is over; interrupted and handed back: %s", "; ".join(map(str, left[:NAMED_RUNS])))
        self._fleet.stop(time.monotonic() + INTERRUPT_GRACE)
        self.in_flight.hand_back_undecided()

    def _forget_listeners(self) -> None:
        for listener in self._own_listeners:
            listeners.remove(listener)

    def _prepare(self) -> None:
        use_engine_connection(self.options.alias, patience=self.options.renew / 4)

    def _loops(self) -> list[Loop]:
        loops = [self._recorder.loop, self._lease_keeper.loop, self._dispatcher.loop, self._waker.loop]
        return [*loops, self._housekeeper.loop, self._planner.loop] if self.options.keeps_house else loops
