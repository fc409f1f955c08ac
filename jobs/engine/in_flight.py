"""What this process holds: every claim from its commit to its recorded outcome."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.domain.claim import Claim
from jobs.domain.context import Progress
from jobs.domain.execution import Execution
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry
from jobs.engine.policy_asker import PATIENCE, PolicyAsker
from jobs.engine.timekeeper import Callback, Timekeeper

logger = logging.getLogger(__name__)

RECENT = 10.0
REMEMBERED_TASKS = 200

Ended = Callable[["Held", Outcome, bool], None]


@dataclass(slots=True)
class Held:
    claim: Claim
    asked_at: float
    """Monotonic instant before the claim was sent: the lease is judged from there."""
    answered_at: float
    """Monotonic instant after the claim's answer: `claimed_at` lies before it, however long the claim waited."""
    began_at: float | None = None
    ended_at: float | None = None
    cancel_requested: bool = False
    lost: bool = False
    lingers: bool = False
    returned_early: bool = False
    """Its call returned while its end on paper was on its way here: then nothing lingers."""
    recorded: bool = False
    """Of a lingering one: its closed attempt is written, so its mark may be taken off again."""
    progress: Progress | None = None
    """The newest."""
    progress_is_new: bool = False
    forget_timeout: Callback | None = None

    @property
    def started_at(self) -> datetime | None:
        """By the database's clock, as nearly as this host can tell, and never after the end: the claim's instant
        plus the monotonic time since its answer."""
        if self.began_at is None:
            return None
        return self.claim.claimed_at + timedelta(seconds=max(0.0, self.began_at - self.answered_at))


class InFlight:
    """The executors' listener. Its lock is held for a few instructions only, never over I/O."""

    def __init__(
        self,
        *,
        registry: Registry,
        timekeeper: Timekeeper,
        start_within: float,
        on_ended: Ended,
        on_timeout: Callable[[Claim], None],
        on_progress: Callable[[], None],
        on_returned: Callable[[Held], None],
    ) -> None:
        self._timekeeper = timekeeper
        self._asker = PolicyAsker(registry, timekeeper, patience=PATIENCE)
        self._start_within = start_within
        self._on_ended = on_ended
        self._on_timeout = on_timeout
        self._on_progress = on_progress
        self._on_returned = on_returned
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._busy = dict.fromkeys(Execution, 0)
        self._busy_by_queue: dict[str, int] = {}
        self._lingering = dict.fromkeys(Execution, 0)
        self._running = 0
        self._early_cancels: dict[int, float] = {}
        self.peak_running = 0
        self._means: dict[tuple[Execution, str], tuple[float, float]] = {}

    # -- what the dispatcher asks

    def add(self, claim: Claim, asked_at: float) -> bool:
        """Whether a cancel notice for the job came before its claim did: then the database must be asked."""
        with self._lock:
            self._held[claim.attempt_id] = Held(claim, asked_at, time.monotonic())
            self._busy[claim.execution] += 1
            self._busy_by_queue[claim.queue] = self._busy_by_queue.get(claim.queue, 0) + 1
            return self._early_cancels.pop(claim.job_id, None) is not None

    def busy(self, execution: Execution) -> int:
        """Claims handed to the executor whose slots are not free again, lingering ones included."""
        return self._busy[execution]

    def busy_in_queue(self, queue: str) -> int:
        return self._busy_by_queue.get(queue, 0)

    def lingering(self, execution: Execution) -> int:
        """Calls that go on although their attempts are closed."""
        return self._lingering[execution]

    def in_flight(self) -> int:
        return sum(self._busy.values())

    @property
    def holds_anything(self) -> bool:
        """Whether there is a claim whose outcome is not written yet, or whose call lingers."""
        return bool(self._held)

    def held(self) -> list[Held]:
        with self._lock:
            return list(self._held.values())

    def unfinished(self) -> int:
        """Runs whose outcome is not known yet."""
        with self._lock:
            return sum(held.ended_at is None for held in self._held.values()) + self._asker.waiting

    def waiting_longer_than(self, seconds: float) -> list[Claim]:
        """Claims whose body has not begun although they were claimed that long ago."""
        limit = time.monotonic() - seconds
        with self._lock:
            return [
                held.claim
                for held in self._held.values()
                if held.began_at is None and held.ended_at is None and held.asked_at < limit
            ]

    def running_longer_than(self, execution: Execution, seconds: float) -> int:
        """Bodies in this execution that began that long ago, lingering ones included."""
        limit = time.monotonic() - seconds
        with self._lock:
            return sum(
                held.claim.execution is execution
                and held.began_at is not None
                and held.began_at < limit
                and (held.ended_at is None or held.lingers)
                for held in self._held.values()
            )

    def anything_waits(self) -> bool:
        with self._lock:
            return any(held.began_at is None and held.ended_at is None for held in self._held.values())

    def slowest_recent_mean(self, execution: Execution) -> float | None:
        """Seconds: the largest of the mean durations of the tasks that ended in this execution lately."""
        with self._lock:
            oldest = time.monotonic() - RECENT
            return max(
                (mean for (where, _), (mean, at) in self._means.items() if where is execution and at > oldest),
                default=None,
            )

    # -- what executors tell (the Listener protocol)

    def may_begin(self, claim: Claim) -> Outcome | None:
        held = self._held.get(claim.attempt_id)
        if held is None or held.lost or time.monotonic() > held.asked_at + self._start_within:
            return Outcome(Ending.UNSTARTED)
        if held.cancel_requested:
            return Outcome(Ending.CANCELLED, reason="cancelled before it began")
        if claim.expires_at is not None:
            waited = timedelta(seconds=time.monotonic() - held.asked_at)
            if claim.claimed_at + waited >= claim.expires_at:
                return Outcome(Ending.CANCELLED, reason="expired")
        return None

    def started(self, claim: Claim) -> None:
        with self._lock:
            held = self._held.get(claim.attempt_id)
            if held is None:
                return
            held.began_at = time.monotonic()
            self._running += 1
            self.peak_running = max(self.peak_running, self._running)
        logger.debug("%s starts", claim)
        if claim.timeout_seconds is not None:
            held.forget_timeout = self._timekeeper.after(claim.timeout_seconds, lambda: self._on_timeout(claim))

    def progressed(self, claim: Claim, progress: Progress) -> None:
        held = self._held.get(claim.attempt_id)
        if held is not None:
            held.progress, held.progress_is_new = progress, True
            self._on_progress()

    def finished(self, claim: Claim, outcome: Outcome, *, lingers: bool = False) -> None:
        with self._lock:
            held = self._held.get(claim.attempt_id)
            if held is None or held.ended_at is not None:
                return
            held.ended_at = time.monotonic()
            held.lingers = lingers = lingers and not held.returned_early
            if held.began_at is not None:
                self._running -= 1
                self._learn(claim, held.ended_at - held.began_at, held.ended_at)
            if lingers:
                self._lingering[claim.execution] += 1
            else:
                self._free(claim)
        if held.forget_timeout is not None:
            held.forget_timeout()
        self._asker.ask(claim, outcome, lambda decided: self._on_ended(held, decided, lingers))

    def returned(self, claim: Claim) -> None:
        with self._lock:
            held = self._held.get(claim.attempt_id)
            if held is None:
                return
            held.returned_early = held.ended_at is None
            if not held.lingers:
                return
            self._lingering[claim.execution] -= 1
            self._free(claim)
        self._on_returned(held)

    def hand_back_undecided(self) -> None:
        """Of runs that timed out and whose retry policy still thinks: the worker stops."""
        self._asker.give_up()

    def drop(self, held: Held) -> None:
        """A lingering call has returned and the database knows."""
        with self._lock:
            self._held.pop(held.claim.attempt_id, None)

    # -- what the recorder and the lease keeper tell

    def forget(self, attempt_id: int) -> None:
        """Its outcome is recorded, or its lease is lost: nothing more will be written. A lingering one stays."""
        with self._lock:
            held = self._held.get(attempt_id)
            if held is None:
                return
            held.recorded = True
            if not held.lingers:
                del self._held[attempt_id]

    def request_cancel(self, job_id: int) -> int | None:
        """The attempt to stop; None when this process holds none yet: then the notice is kept."""
        with self._lock:
            for held in self._held.values():
                if held.claim.job_id == job_id and held.ended_at is None:
                    held.cancel_requested = True
                    return held.claim.attempt_id
            now = time.monotonic()
            self._early_cancels = {job: until for job, until in self._early_cancels.items() if until > now}
            self._early_cancels[job_id] = now + self._start_within
            return None

    def take_progress(self) -> dict[int, Progress]:
        """The newest progress of each unfinished attempt since the last call."""
        news = {}
        with self._lock:
            for attempt_id, held in self._held.items():
                if held.progress is not None and held.progress_is_new and held.ended_at is None:
                    # The mark first: what is reported meanwhile is new again.
                    held.progress_is_new = False
                    news[attempt_id] = held.progress
        return news

    def _free(self, claim: Claim) -> None:
        self._busy[claim.execution] -= 1
        self._busy_by_queue[claim.queue] -= 1

    def _learn(self, claim: Claim, seconds: float, now: float) -> None:
        key = (claim.execution, claim.task)
        known = self._means.get(key)
        self._means[key] = (seconds if known is None else known[0] + 0.1 * (seconds - known[0]), now)
        if len(self._means) > REMEMBERED_TASKS:
            self._means = {one: value for one, value in self._means.items() if value[1] > now - RECENT}
