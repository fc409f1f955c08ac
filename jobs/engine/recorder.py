"""Write what became of runs: outcomes and hand-backs, gathered while the last write is under way."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from django.db import DatabaseError, DataError, IntegrityError

from jobs.domain.closing import Closing
from jobs.domain.failure import system_failure
from jobs.domain.status import WAITING, AttemptOutcome, Status
from jobs.domain.value import value
from jobs.engine.hints import hint_due
from jobs.engine.loop import Loop
from jobs.store.database import database
from jobs.store.record import record, still_open
from jobs.store.release import release

logger = logging.getLogger(__name__)

GROUP = 500
RETRY_HELD_ROW_AFTER = 0.1
NOT_STORABLE = "outcome not storable"
_PROGRAM_LIMIT_EXCEEDED = "54"


@value
class HandBack:
    """A claim whose body never began."""

    attempt_id: int
    task_unknown: bool = False


Item = Closing | HandBack


class Recorder:
    """Takes items from any thread and writes them in groups. An item leaves only when it is written or read as lost.

    Jobs that go back and are due within `soon` seconds wake the sleepers, which look by themselves after that.
    """

    def __init__(
        self,
        alias: str,
        worker_id: UUID,
        name: str,
        *,
        linger_seconds: float,
        soon: float,
        written: Callable[[int], None],
        prepare: Callable[[], None],
    ) -> None:
        self._alias = alias
        self._worker_id = worker_id
        self._name = name
        self._linger_seconds = linger_seconds
        self._soon = soon
        self._written = written
        self._lock = threading.Lock()
        self._items: deque[Item] = deque()
        self._unwritten = 0
        self._group = GROUP
        self._empty = threading.Condition(self._lock)
        self._loop = Loop("recorder", self._work, prepare=prepare)

    @property
    def loop(self) -> Loop:
        return self._loop

    @property
    def backlog(self) -> int:
        return self._unwritten

    def start(self) -> None:
        self._loop.start()

    def put(self, item: Item) -> None:
        with self._lock:
            self._items.append(item)
            self._unwritten += 1
        self._loop.wake()

    def drain(self, deadline: float) -> bool:
        """Whether everything was written by `deadline`."""
        with self._empty:
            return self._empty.wait_for(lambda: self._unwritten == 0, max(0.0, deadline - time.monotonic()))

    def stop(self, deadline: float) -> None:
        if not self.drain(deadline):
            logger.warning(
                "stopping with %s outcomes not written: their leases lapse and the jobs are reclaimed", self._unwritten
            )
        self._loop.stop(max(deadline, time.monotonic() + 1.0))

    def _work(self) -> float:
        group = self._take()
        if not group:
            return 3600.0
        left: Sequence[Item] = group
        try:
            left = self._write(group)
            self._group = min(GROUP, self._group * 2)
        except Exception:
            # Perhaps it was not the database but one of them: smaller groups, until that one stands alone.
            self._group = max(1, len(group) // 2)
            raise
        finally:
            self._give_back(left)
        with self._lock:
            more = len(self._items) > len(left)
        return 0.0 if more or not left else RETRY_HELD_ROW_AFTER

    def _take(self) -> list[Item]:
        """A run of items of one kind: what one transaction writes, or none of it."""
        with self._lock:
            group: list[Item] = []
            while self._items and len(group) < self._group and (not group or _kind(group[0]) == _kind(self._items[0])):
                group.append(self._items.popleft())
            return group

    def _give_back(self, left: Sequence[Item]) -> None:
        with self._empty:
            # To the back: rows that somebody holds must not delay the others.
            self._items.extend(left)
            self._unwritten = len(self._items)
            if not self._unwritten:
                self._empty.notify_all()

    def _write(self, group: Sequence[Item]) -> list[Item]:
        """The items that have to be tried again."""
        closings = [item for item in group if isinstance(item, Closing)]
        if closings:
            return [*self._record(closings)]
        hand_backs = [item for item in group if isinstance(item, HandBack)]
        return [*self._release(hand_backs, hand_backs[0].task_unknown)]

    def _record(self, closings: Sequence[Closing]) -> list[Closing]:
        db = database(self._alias)
        try:
            recorded = record(db, self._worker_id, closings, actor=self._name, linger_seconds=self._linger_seconds)
        except (DatabaseError, ValueError) as error:
            if not is_about_the_data(error):
                raise
            return self._record_apart(closings, error)
        for one in closings:
            if one.attempt_id in recorded.skipped:
                continue
            if one.attempt_id in recorded.written_before:
                logger.info("%s: recorded, though its commit got no answer", one)
            elif one.attempt_id in recorded.lost:
                logger.warning("%s: the lease is lost, its outcome (%s) is discarded", one, one.outcome)
            else:
                _log_outcome(one, recorded.closed[one.attempt_id])
            self._written(one.attempt_id)
        if any(self._waits_soon(one, recorded.closed.get(one.attempt_id)) for one in closings):
            hint_due(db)
        return [one for one in closings if one.attempt_id in recorded.skipped]

    def _waits_soon(self, closing: Closing, went_to: Status | None) -> bool:
        return went_to in WAITING and (closing.delay_seconds or 0.0) <= self._soon

    def _record_apart(self, closings: Sequence[Closing], error: Exception) -> list[Closing]:
        """An error splits the group until the bad row stands alone; that one is recorded without its details."""
        if len(closings) > 1:
            middle = len(closings) // 2
            return self._record(closings[:middle]) + self._record(closings[middle:])
        closing = closings[0]
        if closing.reason == NOT_STORABLE:
            logger.error("%s: its outcome cannot be stored at all; its lease will lapse", closing, exc_info=error)
            self._written(closing.attempt_id)
            return []
        logger.error("%s: its outcome cannot be stored as it is; recording it without details", closing, exc_info=error)
        return self._record([without_details(closing, error)])

    def _release(self, items: Sequence[HandBack], task_unknown: bool) -> list[HandBack]:
        ids = [item.attempt_id for item in items]
        db = database(self._alias)
        released = release(db, self._worker_id, ids, actor=self._name, task_unknown=task_unknown)
        if released:
            hint_due(db)
        missing = set(ids) - released
        skipped = still_open(db, self._worker_id, missing) if missing else set()
        for attempt_id in ids:
            if attempt_id not in skipped:
                self._written(attempt_id)
        return [item for item in items if item.attempt_id in skipped]


def _kind(item: Item) -> tuple[bool, bool]:
    return isinstance(item, Closing), isinstance(item, HandBack) and item.task_unknown


def is_about_the_data(error: Exception) -> bool:
    """Whether the same row would be refused again; anything else, such as a server that is read-only, passes."""
    if isinstance(error, (DataError, IntegrityError, ValueError)):
        return True
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return state.startswith(_PROGRAM_LIMIT_EXCEEDED)


def without_details(closing: Closing, error: Exception) -> Closing:
    """What can always be stored: a job whose work is done must not run again because of its texts."""
    failure = system_failure("jobs.OutcomeNotStorable", f"the database refused the outcome's details: {error}")
    if closing.status is Status.COMPLETED:
        closing = replace(closing, outcome=AttemptOutcome.FAILED, status=Status.FAILED, failures=1)
    return replace(closing, result=None, log=(), reason=NOT_STORABLE, failure=failure)


def _log_outcome(closing: Closing, status: Status) -> None:
    failure = closing.failure
    if failure is None:
        logger.debug("%s ended: %s", closing, status)
    elif status is Status.RETRY_WAIT:
        logger.warning("%s failed, next try in %.1f s: %s", closing, closing.delay_seconds or 0.0, failure)
    else:
        # A job's own exception was logged as ERROR where it was raised, with its traceback.
        logger.log(logging.ERROR if failure.is_ours else logging.DEBUG, "%s ended %s: %s", closing, status, failure)
