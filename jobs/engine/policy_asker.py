"""Asks a task's retry policy about runs that timed out, where a slow one holds up nobody else."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import replace

from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry
from jobs.domain.task import TaskDefinition
from jobs.engine.body import delay_before_retry
from jobs.engine.timekeeper import Timekeeper

PATIENCE = 30.0
"""Seconds that a task's own `backoff` may take; then there is no retry."""

logger = logging.getLogger(__name__)

Answer = Callable[[Outcome], None]


class PolicyAsker:
    """A timeout is fired in the timekeeper's thread. The task's own code must not run there: a `backoff` that takes
    its time would delay the timeouts of all the others, so each such call gets a thread."""

    def __init__(self, registry: Registry, timekeeper: Timekeeper, *, patience: float = PATIENCE) -> None:
        self._registry = registry
        self._timekeeper = timekeeper
        self._patience = patience
        self._rng = random.Random()
        self._lock = threading.Lock()
        self._open: dict[int, Answer] = {}

    @property
    def waiting(self) -> int:
        """Runs whose policy has not answered yet."""
        return len(self._open)

    def ask(self, claim: Claim, outcome: Outcome, answer: Answer) -> None:
        """Calls `answer` once, with the outcome and what the policy makes of it: at once, or from another thread."""
        definition = self._registry.find(claim.task)
        if outcome.ending is not Ending.TIMED_OUT or definition is None:
            answer(outcome)
        elif definition.options.retry.backoff is None:
            answer(self._decided(claim, definition, outcome))
        else:
            with self._lock:
                self._open[claim.attempt_id] = answer
            self._timekeeper.after(self._patience, lambda: self._lose_patience(claim, outcome))
            threading.Thread(
                target=self._ask_apart, args=(claim, definition, outcome), name="jobs-retry-policy", daemon=True
            ).start()

    def give_up(self) -> None:
        """The worker stops: what is not answered yet is handed back."""
        for attempt_id in list(self._open):
            self._settle(
                attempt_id,
                Outcome(Ending.INTERRUPTED, reason="the worker stops; it timed out, its retry policy did not answer"),
            )

    def _ask_apart(self, claim: Claim, definition: TaskDefinition, outcome: Outcome) -> None:
        try:
            decided = self._decided(claim, definition, outcome)
        finally:
            connections.close_all()
        self._settle(claim.attempt_id, decided)

    def _decided(self, claim: Claim, definition: TaskDefinition, outcome: Outcome) -> Outcome:
        try:
            error = TimeoutError(f"ran longer than {claim.timeout_seconds} s")
            retry = delay_before_retry(claim, definition, error, self._rng)
        except BaseException:
            logger.exception("%s: the retry policy failed: no retry", claim)
            retry = None
        return replace(outcome, retry_after_seconds=retry)

    def _lose_patience(self, claim: Claim, outcome: Outcome) -> None:
        if self._settle(claim.attempt_id, outcome):
            logger.error("%s: the retry policy did not answer within %g s: no retry", claim, self._patience)

    def _settle(self, attempt_id: int, outcome: Outcome) -> bool:
        """Whether this was the first answer."""
        with self._lock:
            answer = self._open.pop(attempt_id, None)
        if answer is not None:
            answer(outcome)
        return answer is not None
