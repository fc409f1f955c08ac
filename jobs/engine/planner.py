"""Turn due occurrences of schedules into jobs, on time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from django.db import connections

from jobs.domain.advance import Step, advance
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.errors import InvalidRule, TaskNotFound
from jobs.domain.recurrence import rule_from
from jobs.domain.text import class_path, first_line
from jobs.engine.hints import hint_due
from jobs.engine.loop import Loop
from jobs.engine.options import EngineOptions
from jobs.engine.recorder import is_about_the_data
from jobs.engine.tz_watch import TzWatch
from jobs.store.attention import attend
from jobs.store.database import Database, database
from jobs.store.fire import Fired, fire, flag, park
from jobs.store.submit import Submission
from jobs.store.unblock import cancel_previous, unblock

logger = logging.getLogger(__name__)

SHORTEST_SLEEP = 0.02
BLOCKED_POLL = 0.5
"""Seconds between two looks while a job waits for the end of an earlier one of its schedule."""
UNKNOWN_TASK_PATIENCE = 60.0
"""Seconds that an occurrence whose task is unknown here is left to processes that may know it."""
FACTORIES_AT_ONCE = 4


class Planner:
    """Every process of the scheduler role has one: any number of them make each occurrence once.

    Factories are project code and may take long: each schedule that has one is fired in a thread of its own.
    """

    def __init__(self, options: EngineOptions, *, prepare: Callable[[], None]) -> None:
        self._options = options
        self._prepare = prepare
        self._tz_watch = TzWatch(options)
        self._in_factories: set[int] = set()
        self._lock = threading.Lock()
        self.loop = Loop("planner", self._work, prepare=prepare)

    def start(self) -> None:
        self.loop.start()

    def stop(self, deadline: float) -> None:
        self.loop.stop(deadline)

    def _work(self) -> float:
        db = database(self._options.alias)
        seen = attend(db)
        moved = False
        for schedule in seen.due:
            if self.loop.stopping:
                return 0.0
            moved |= self._attend_to(db, schedule, seen.now)
        if seen.holds_jobs:
            cancel_previous(db, actor=self._options.name)
            if unblock(db, actor=self._options.name):
                hint_due(db)
        if moved:
            return 0.0  # the next instants are others now
        self._tz_watch.look(db)
        sleep = BLOCKED_POLL if seen.holds_jobs else self._options.poll
        if seen.next_in is not None and seen.next_in > 0:
            sleep = min(sleep, seen.next_in)
        return max(SHORTEST_SLEEP, sleep)

    def _attend_to(self, db: Database, schedule: DueSchedule, now: datetime) -> bool:
        """Whether its row was written. Whatever one schedule does, the next one is attended to."""
        try:
            if schedule.paused:
                return park(db, schedule)
            if schedule.factory and schedule.timing.planned_at is not None:
                self._start_factory(schedule, now)
                return False
            return self._fire(db, schedule, now)
        except Exception as error:
            if not isinstance(error, InvalidRule) and not is_about_the_data(error):
                raise
            return self._flag(db, schedule, error)

    def _flag(self, db: Database, schedule: DueSchedule, error: Exception) -> bool:
        flagged = flag(db, schedule, first_line(str(error)))
        if flagged:
            logger.error("%s cannot be computed, and waits for an edit: %s", schedule, error)
        return flagged

    def _fire(self, db: Database, schedule: DueSchedule, now: datetime) -> bool:
        step = advance(schedule.timing, now)
        wanted, problem = self._wanted(schedule, step, now)
        if problem is None:
            return False
        fired = fire(db, schedule, step, wanted, problem=problem, actor=self._options.name)
        if fired is None:
            return False
        if fired.jobs:
            hint_due(db)
        if problem:
            logger.error("%s: no job was made: %s", schedule, problem)
        _tell(schedule, fired, step)
        return True

    def _wanted(
        self, schedule: DueSchedule, step: Step, now: datetime
    ) -> tuple[Mapping[datetime, Submission | str], str | None]:
        """What to make of each occurrence, and what is wrong with the schedule; None: leave it to others for now."""
        wanted: dict[datetime, Submission | str] = {}
        problem = ""
        rule = rule_from(schedule.timing.rule)
        for at in step.occurrences:
            try:
                made = self._options.submission_for(schedule, at)
                if made is None:
                    wanted[at] = "its factory gave nothing to do"
                    continue
                wanted[at] = replace(made, run_at=rule.run_at(at, schedule.name))
            except TaskNotFound as error:
                if (now - at).total_seconds() < UNKNOWN_TASK_PATIENCE:
                    return {}, None
                problem = str(error)
                wanted[at] = problem
            except BaseException as error:  # a factory is project code, and one that exits is one that failed
                logger.exception("%s: its job of %s cannot be made", schedule, at)
                problem = f"{class_path(type(error))}: {first_line(str(error))}"
                wanted[at] = problem
        return wanted, problem

    def _start_factory(self, schedule: DueSchedule, now: datetime) -> None:
        with self._lock:
            if schedule.id in self._in_factories or len(self._in_factories) >= FACTORIES_AT_ONCE:
                return
            self._in_factories.add(schedule.id)
        name = f"jobs-factory-{schedule.id}"
        threading.Thread(target=self._in_factory, args=(schedule, now), name=name, daemon=True).start()

    def _in_factory(self, schedule: DueSchedule, now: datetime) -> None:
        db = database(self._options.alias)
        try:
            self._prepare()
            self._fire(db, schedule, now)
        except InvalidRule as error:
            self._flag(db, schedule, error)
        except Exception:
            logger.exception("%s: firing it failed; it is tried again", schedule)
        finally:
            connections.close_all()
            with self._lock:
                self._in_factories.discard(schedule.id)
            self.loop.wake()


def _tell(schedule: DueSchedule, fired: Fired, step: Step) -> None:
    for at, job_id in fired.jobs.items():
        logger.debug("%s: job %s for %s", schedule, job_id, at)
    for at, why in fired.skipped.items():
        logger.info("%s: no job for %s: %s", schedule, at, why)
    if step.missed:
        logger.warning("%s: %s%s occurrences were missed", schedule, step.missed, "+" if step.missed_more else "")
