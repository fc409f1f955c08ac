"""Promote, claim, hand over, sleep: the loop that decides what runs next in this process.

Over 300 lines: the round, its limits and its sleep share one state; the limits are the next to move out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.outcome import Ending, Outcome
from jobs.engine.executors.port import Executor
from jobs.engine.hints import hint_due
from jobs.engine.in_flight import InFlight
from jobs.engine.loop import Loop
from jobs.engine.options import EngineOptions
from jobs.engine.reach import Reach
from jobs.store.claim import Owner, claim
from jobs.store.database import Database, PostgreSQL, database
from jobs.store.extend import begin, cancel_requests
from jobs.store.look import Facts, look
from jobs.store.pick import Lane
from jobs.store.promote import expire, promote
from jobs.store.release import open_attempts, release
from jobs.store.workers import mark_asleep

logger = logging.getLogger(__name__)

AHEAD_LIMIT = 400
ROUND_LIMIT = 1000
UNWRITTEN_LIMIT = 5000
"""Outcomes not written yet, beyond which nothing more is claimed."""
LOOK_FOR_CANCELS_EVERY = 1.0
"""On PostgreSQL, where a notification brings them at once."""
LOOK_FOR_STRAYS_EVERY = 2.0
"""For as long as a lease after a failed round, and never else."""
SHORTEST_SLEEP = 0.02
BUSY_ROUNDS = 20
PROMOTE_EVERY = 0.1
"""Of a process that has jobs to claim anyway."""


class Dispatcher:
    def __init__(
        self,
        options: EngineOptions,
        in_flight: InFlight,
        executors: Mapping[Execution, Executor],
        *,
        backlog: Callable[[], int],
        cancel: Callable[[int], None],
        prepare: Callable[[], None],
    ) -> None:
        self._options = options
        self._owner = Owner(options.worker_id, options.name)
        self._in_flight = in_flight
        self._executors = executors
        self._backlog = backlog
        self._cancel = cancel
        self._queues = list(options.queues)
        self._executions = list(executors)
        self._worth = dict.fromkeys(executors, 0)
        self._unknown: dict[str, float] = {}
        self._looked_for_cancels_at = float("-inf")
        self._promote_at = float("-inf")
        self._reach = Reach()
        self._strays_until = self._looked_for_strays_at = float("-inf")
        self._rounds_since_idle = 0
        self._hungry: set[Execution] = set()
        """Executions that may have left some behind in the last round, for want of room."""
        self.asleep = False
        self._counting = threading.Lock()
        self._counted = 0
        self.loop = Loop("dispatcher", self._round, prepare=prepare, longest_backoff=options.back_within)

    @property
    def exhausted(self) -> bool:
        """Whether `max_jobs` have begun, or are about to."""
        return self._options.max_jobs is not None and self._counted >= self._options.max_jobs

    @property
    def unknown_tasks(self) -> frozenset[str]:
        """Those that this process does not know, and leaves to others for now."""
        return frozenset(self._unknown)

    def count(self, claims: int) -> None:
        """Towards `max_jobs`; negative: claims that were handed back without having begun."""
        with self._counting:
            self._counted += claims

    def start(self) -> None:
        self.loop.start()

    def stop(self, deadline: float) -> None:
        self.loop.stop(deadline)

    def wake(self) -> None:
        self._reach.start_over()
        self.loop.wake()

    def avoid(self, task: str) -> None:
        """This process does not know the task: leave its jobs to others for a while."""
        self._unknown[task] = time.monotonic() + self._options.unknown_task_pause

    def slot_freed(self, execution: Execution) -> None:
        """Wake up for more when the last round left some behind and the waiting claims run out."""
        if self._wants_more(execution):
            self.loop.wake()

    def _round(self) -> float:
        db = database(self._options.alias)
        self._look_for_strays(db)
        self._stop_cancelled(db)
        self._hand_back_waiting()
        if not self.loop.was_woken and not self._rounds_since_idle:
            # Nobody said anything: one statement tells whether there is anything to do.
            facts = look(db, self._queues)
            if not facts.anything:
                return self._sleep(db, facts)
        claimed = self._claim(db) if self._options.claims else 0
        seen: Facts | None = None
        moved = 0
        if not claimed or time.monotonic() >= self._promote_at:
            seen = look(db, () if claimed else self._queues)
            moved = self._promote(db, seen) if self._options.keeps_house else 0
        if moved and (self._hungry or not self._options.claims):
            hint_due(db)  # others may have room for what this process cannot take
        if moved or claimed:
            self._rounds_since_idle += 1
            if self.asleep and self._rounds_since_idle > BUSY_ROUNDS:
                self._mark_asleep(db, False)
            if self._hungry and not any(self._wants_more(execution) for execution in self._hungry):
                return SHORTEST_SLEEP  # or until a slot is freed
            return 0.0
        self._rounds_since_idle = 0
        return self._sleep(db, seen)

    def _promote(self, db: Database, facts: Facts) -> int:
        moved = expire(db, actor=self._options.name) if facts.expired else 0
        if facts.due_in is not None and facts.due_in <= 0:
            moved += promote(db, actor=self._options.name)
        if moved:
            self._reach.start_over()
        else:
            self._promote_at = time.monotonic() + PROMOTE_EVERY
        return moved

    def _claim(self, db: Database) -> int:
        room = self._room()
        limits = self._limits(room)
        self._hungry = set(self._executors)
        if not any(sum(limit) for limit in limits.values()):
            return 0
        claims, asked_at = self._claimed(db, limits, room)
        if claims:
            # Least recently served first: what this round served goes to the end of the line.
            queues, executions = {one.queue for one in claims}, {one.execution for one in claims}
            self._queues.sort(key=lambda queue: queue in queues)
            self._executions.sort(key=lambda execution: execution in executions)
        noticed = {one.attempt_id: one.job_id for one in claims if self._in_flight.add(one, asked_at)}
        self.count(len(claims))
        to_do = deque(claims)
        try:
            if noticed:
                self._cancel_requested_among(db, noticed)
            while to_do:
                self._hand_over(db, to_do[0])
                to_do.popleft()
        finally:
            # The database failed between the claim and here: nobody else knows of these, and they would be renewed
            # for ever.
            for one in to_do:
                self._in_flight.finished(one, Outcome(Ending.UNSTARTED))
        return len(claims)

    def _wants_more(self, execution: Execution) -> bool:
        """Whether what waits for a slot runs out although more is ready, so that it is time to claim again."""
        if execution not in self._hungry:
            return False
        ahead = self._in_flight.busy(execution) - self._executors[execution].slots
        return ahead <= self._worth[execution] // 2

    def _claimed(
        self, db: Database, limits: Mapping[Execution, tuple[int, int]], room: int
    ) -> tuple[list[Claim], float]:
        """The claims, and the monotonic instant before they were asked for."""
        asked_at = time.monotonic()
        self._unknown = {task: until for task, until in self._unknown.items() if until > asked_at}
        from_start = self._reach.begin()
        claims = claim(
            db,
            self._owner,
            self._lanes(limits),
            limits=limits,
            lease_seconds=self._options.lease,
            at_most=room,
            queue_room={
                queue: most - self._in_flight.busy_in_queue(queue)
                for queue, most in self._options.queues.items()
                if most is not None
            },
            unknown_tasks=self._unknown,
            marks=self._reach.marks,
        )
        self._hungry = self._left_some(claims, limits, room)
        self._reach.end(asked_at, from_start=from_start, short=not (claims and self._hungry))
        if not claims and not from_start:
            return self._claimed(db, limits, room)
        return claims, asked_at

    def _room(self) -> int:
        """How many claims may be taken now, over all executions."""
        room = ROUND_LIMIT
        if self._backlog() > UNWRITTEN_LIMIT or self.loop.stopping:
            room = 0
        if self._options.concurrency is not None:
            room = min(room, self._options.concurrency - self._in_flight.in_flight())
        if self._options.max_jobs is not None:
            room = min(room, self._options.max_jobs - self._counted)
        return max(0, room)

    def _limits(self, room: int) -> dict[Execution, tuple[int, int]]:
        """Per execution, least recently served first: how many slots are free, and how many claims beyond them are
        worth having now. Each may use up the whole room: which of them has jobs is not known yet."""
        limits = {}
        for execution in self._executions:
            slots, busy = self._executors[execution].slots, self._in_flight.busy(execution)
            free = max(0, min(slots - busy, room))
            self._worth[execution] = self._worth_ahead(execution)
            ahead = max(0, min(slots + self._worth[execution] - busy - free, room - free))
            if execution is Execution.PROCESS or self._options.concurrency is not None:
                ahead = 0
            limits[execution] = (free, ahead)
        return limits

    def _worth_ahead(self, execution: Execution) -> int:
        """What the slots will finish within `claim_ahead` seconds, by the slowest of the tasks seen lately."""
        slowest = self._in_flight.slowest_recent_mean(execution)
        if slowest is None:
            return 0
        # A slot whose body has run for longer than that already will finish none of them.
        slots = self._executors[execution].slots
        slots -= self._in_flight.running_longer_than(execution, self._options.claim_ahead)
        return min(AHEAD_LIMIT, int(self._options.claim_ahead * slots / max(slowest, 1e-5)))

    def _lanes(self, limits: Mapping[Execution, tuple[int, int]]) -> list[Lane]:
        lanes = []
        for queue in self._queues:
            most = self._options.queues[queue]
            left = None if most is None else max(0, most - self._in_flight.busy_in_queue(queue))
            for execution, (free, ahead) in limits.items():
                above = self._reach.above(queue, execution)
                if left is None:
                    lanes.append(Lane(queue, execution, free, ahead, above))
                else:
                    # A numbered queue is served from its own slots, never ahead of them.
                    lanes.append(Lane(queue, execution, min(free, left), 0, above))
        return lanes

    def _left_some(self, claims: list[Claim], limits: Mapping[Execution, tuple[int, int]], room: int) -> set[Execution]:
        """The executions of which more may be ready than this round had room for."""
        if len(claims) >= room or any(most is not None for most in self._options.queues.values()):
            return set(limits)
        took = Counter(one.execution for one in claims)
        return {execution for execution, limit in limits.items() if sum(limit) <= took[execution]}

    def _hand_over(self, db: Database, one: Claim) -> None:
        if one.at_most_once and not begin(db, self._options.worker_id, one.attempt_id):
            self._in_flight.finished(one, Outcome(Ending.UNSTARTED))
            return
        self._executors[one.execution].submit(one)

    def _stop_cancelled(self, db: Database) -> None:
        """Where no notification brings a cancel request, the round does."""
        if isinstance(db, PostgreSQL) and time.monotonic() < self._looked_for_cancels_at + LOOK_FOR_CANCELS_EVERY:
            return
        self._looked_for_cancels_at = time.monotonic()
        held = {one.claim.attempt_id: one.claim.job_id for one in self._in_flight.held() if not one.cancel_requested}
        if held:
            self._cancel_requested_among(db, held)

    def _cancel_requested_among(self, db: Database, held: Mapping[int, int]) -> None:
        """`held` maps attempt ids to job ids."""
        for attempt_id in cancel_requests(db, self._options.worker_id, held):
            self._cancel(held[attempt_id])

    def _look_for_strays(self, db: Database) -> None:
        """A claim whose COMMIT got no answer may have left attempts that are ours and that nobody here holds."""
        now = time.monotonic()
        if self.loop.errors:
            # That COMMIT may still be under way, and a row be held: look again, until its lease would be over anyway.
            self._strays_until, self._looked_for_strays_at = now + self._options.lease, float("-inf")
        if now < self._strays_until and now >= self._looked_for_strays_at + LOOK_FOR_STRAYS_EVERY:
            self._looked_for_strays_at = now
            self._hand_back_strays(db)

    def _hand_back_strays(self, db: Database) -> None:
        held = {one.claim.attempt_id for one in self._in_flight.held()}
        strays = open_attempts(db, self._options.worker_id) - held
        if strays:
            released = release(db, self._options.worker_id, strays, actor=self._options.name)
            logger.warning("handed back %s claims whose commit got no answer", len(released))
            hint_due(db)

    def _hand_back_waiting(self) -> None:
        for one in self._in_flight.waiting_longer_than(self._options.hand_back_after):
            if self._executors[one.execution].withdraw(one.attempt_id):
                self._in_flight.finished(one, Outcome(Ending.UNSTARTED))

    def _sleep(self, db: Database, facts: Facts | None) -> float:
        """How long: until the next due instant, at most the poll interval; a wake-up ends it."""
        saturated = self._options.claims and not any(sum(limit) for limit in self._limits(self._room()).values())
        if not self.asleep and not saturated:
            # Mark, commit, then look once more: what was submitted before the mark sent no hint.
            self._mark_asleep(db, True)
            return 0.0
        sleep = self._options.poll
        if self._in_flight.anything_waits():
            sleep = min(sleep, self._options.hand_back_after)
        if saturated:
            return sleep
        facts = facts or look(db, self._queues)
        if facts.anything and not self._options.claims:
            return SHORTEST_SLEEP
        if facts.due_in is not None and self._options.keeps_house:
            # Overdue although nothing was promoted: its call still lingers, or its row is held.
            sleep = min(sleep, facts.due_in if facts.due_in > 0 else 0.25)
        return max(SHORTEST_SLEEP, sleep)

    def _mark_asleep(self, db: Database, asleep: bool) -> None:
        mark_asleep(db, self._options.worker_id, asleep)
        self.asleep = asleep
