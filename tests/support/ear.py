"""An executor's listener that remembers, and claims to feed one with."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from typing import Any

from jobs.domain.claim import Claim
from jobs.domain.context import Progress
from jobs.domain.execution import Execution
from jobs.domain.outcome import Outcome

_ids = itertools.count(1)


def claim(task: str, *args: Any, timeout_seconds: float | None = 60) -> Claim:
    """A claim with an attempt id of its own."""
    number = next(_ids)
    return Claim(
        attempt_id=number,
        job_id=number,
        number=1,
        task=task,
        queue="default",
        execution=Execution.PROCESS,
        arguments={"args": list(args), "kwargs": {}},
        failures=0,
        losses=0,
        snoozes=0,
        max_retries=0,
        max_lost=3,
        retry_base_seconds=1,
        retry_max_seconds=300,
        retry_jitter=False,
        timeout_seconds=timeout_seconds,
        at_most_once=False,
        store_result=True,
        expires_at=None,
        claimed_at=datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc),
        unknown_since=None,
    )


class Ear:
    """Hears in any thread what an executor says, as `(what, attempt_id)` in order."""

    def __init__(self, refusal: Outcome | None = None) -> None:
        self.heard: list[tuple[str, int]] = []
        self.progress: dict[int, Progress] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.refusal = refusal
        self._changed = threading.Condition()

    def may_begin(self, claim: Claim) -> Outcome | None:
        return self.refusal

    def started(self, claim: Claim) -> None:
        self._hear("started", claim)

    def progressed(self, claim: Claim, progress: Progress) -> None:
        self.progress[claim.attempt_id] = progress
        self._hear("progressed", claim)

    def finished(self, claim: Claim, outcome: Outcome, *, lingers: bool = False) -> None:
        self.outcomes[claim.attempt_id] = outcome
        self._hear("finished", claim)

    def returned(self, claim: Claim) -> None:
        self._hear("returned", claim)

    def of(self, claim: Claim) -> list[str]:
        with self._changed:
            return [what for what, attempt_id in self.heard if attempt_id == claim.attempt_id]

    def counts(self, what: str) -> Counter[int]:
        with self._changed:
            return Counter(attempt_id for said, attempt_id in self.heard if said == what)

    def wait_for(self, what: str, claim: Claim, timeout: float = 30) -> None:
        """Until this was heard of the claim; AssertionError when it is not in time."""
        give_up_at = time.monotonic() + timeout
        with self._changed:
            while (what, claim.attempt_id) not in self.heard:
                left = give_up_at - time.monotonic()
                assert left > 0, f"{claim.task}: not {what} within {timeout} s; heard {self.heard[-20:]}"
                self._changed.wait(left)

    def outcome(self, claim: Claim, timeout: float = 30) -> Outcome:
        self.wait_for("finished", claim, timeout)
        return self.outcomes[claim.attempt_id]

    def _hear(self, what: str, claim: Claim) -> None:
        with self._changed:
            self.heard.append((what, claim.attempt_id))
            self._changed.notify_all()
