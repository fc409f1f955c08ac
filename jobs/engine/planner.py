"""Turn due occurrences of schedules into jobs, on time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import DatabaseError

from jobs.domain.advance import Step, advance
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.errors import InvalidRule, JobsError
from jobs.domain.recurrence import PlainRule, rule_from
from jobs.domain.text import class_path, first_line
from jobs.engine.factory_calls import FactoryCalls
from jobs.engine.hints import hint_due
from jobs.engine.loop import Loop
from jobs.engine.options import EngineOptions
from jobs.engine.recorder import is_about_the_data
from jobs.engine.tz_watch import TzWatch
from jobs.store.attention import attend
from jobs.store.database import Database, database
from jobs.store.fire import Fired, fire, flag, flag_unreadable, park
from jobs.store.submit import Submission
from jobs.store.unblock import cancel_previous, unblock

logger = logging.getLogger(__name__)

SHORTEST_SLEEP = 0.02
BLOCKED_POLL = 0.5
"""Seconds between two looks while a job waits for the end of an earlier one of its schedule."""
UNKNOWN_TASK_PATIENCE = 60.0
"""Seconds that an occurrence whose job cannot be made here is left to processes that may know its task."""
TRY_AGAIN_AFTER = 60.0
"""Seconds until a rule that could not be computed is tried again: it may have been this host's time zone data."""


@dataclass(slots=True)
class Wish:
    """What to make of each occurrence of a step."""

    step: Step
    jobs: dict[datetime, Submission | str] = field(default_factory=dict)
    """A submission, or the reason why there is none."""
    problem: str | None = ""
    """What is wrong with the schedule; None: its task is unknown here, and left to others for now."""


class Planner:
    """Every process of the scheduler role has one: any number of them make each occurrence once.

    Factories are asked in threads of their own; this loop alone writes.
    """

    def __init__(self, options: EngineOptions, *, prepare: Callable[[], None]) -> None:
        self._options = options
        self._tz_watch = TzWatch(options)
        self.loop = Loop("planner", self._work, prepare=prepare)
        self._troubled: dict[int, tuple[PlainRule | None, float]] = {}
        self._factories: FactoryCalls[Wish] = FactoryCalls(answered=self.loop.wake)

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
        for schedule_id, why in seen.unreadable.items():
            if self._is_new_trouble(schedule_id, None) and flag_unreadable(db, schedule_id, why):
                logger.error("schedule %s cannot be read, and waits for an edit: %s", schedule_id, why)
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
            return park(db, schedule) if schedule.paused else self._fire(db, schedule, now)
        except DatabaseError as error:
            if not is_about_the_data(error):
                raise
            return self._skip(db, schedule, now, first_line(str(error)))
        except Exception as error:  # noqa: BLE001 - a rule that only SQL can write may fail in any way
            return self._flag(db, schedule, error)

    def _flag(self, db: Database, schedule: DueSchedule, error: Exception) -> bool:
        if not self._is_new_trouble(schedule.id, schedule.timing.rule):
            return False
        why = str(error) if isinstance(error, InvalidRule) else f"{type(error).__name__}: {error}"
        flagged = flag(db, schedule, first_line(why))
        if flagged:
            logger.error("%s cannot be computed, and is tried again now and then: %s", schedule, why)
        return flagged

    def _is_new_trouble(self, schedule_id: int, rule: PlainRule | None) -> bool:
        """Whether it is the first time in a while that this rule fails."""
        known, until = self._troubled.get(schedule_id, (None, 0.0))
        if known == rule and time.monotonic() < until:
            return False
        self._troubled[schedule_id] = (rule, time.monotonic() + TRY_AGAIN_AFTER)
        return True

    def _skip(self, db: Database, schedule: DueSchedule, now: datetime, why: str) -> bool:
        """The database refuses the job's row: no job this time."""
        step = advance(schedule.timing, now)
        problem = f"the database refused its job: {why}"
        fired = fire(
            db, schedule, step, dict.fromkeys(step.occurrences, problem), problem=problem, actor=self._options.name
        )
        self._factories.take_off(schedule)
        logger.error("%s: %s", schedule, problem)
        return fired is not None

    def _fire(self, db: Database, schedule: DueSchedule, now: datetime) -> bool:
        wish = self._wish(schedule, advance(schedule.timing, now), now)
        if wish is None or wish.problem is None:
            return False
        fired = fire(db, schedule, wish.step, wish.jobs, problem=wish.problem, actor=self._options.name)
        self._factories.take_off(schedule)
        if fired is None:
            return False
        if fired.jobs:
            hint_due(db)
        if wish.problem:
            logger.error("%s: no job was made: %s", schedule, wish.problem)
        _tell(schedule, fired, wish.step)
        return True

    def _wish(self, schedule: DueSchedule, step: Step, now: datetime) -> Wish | None:
        """None: its factory has not answered yet."""
        if not schedule.factory or not step.occurrences:
            return self._wanted(schedule, step, now)
        wish = self._factories.answer(schedule, lambda: self._wanted(schedule, step, now))
        if wish is not None and wish.problem is None:
            self._factories.take_off(schedule)  # asked again, until somebody knows it or a minute has passed
        return wish

    def _wanted(self, schedule: DueSchedule, step: Step, now: datetime) -> Wish:
        wish = Wish(step)
        for at in step.occurrences:
            try:
                made = self._options.submission_for(schedule, at)
                if made is None:
                    wish.jobs[at] = "its factory gave nothing to do"
                else:
                    delayed_to = rule_from(schedule.timing.rule).run_at(at, schedule.name)
                    wish.jobs[at] = replace(made, run_at=delayed_to)
            except JobsError as error:
                # Not found, not declared, not fitting here: another release's process may know better.
                is_new = (now - (schedule.timing.planned_at or at)).total_seconds() < UNKNOWN_TASK_PATIENCE
                wish.problem = None if is_new else str(error)
                wish.jobs[at] = str(error)
            except BaseException as error:  # a factory is project code, and one that exits is one that failed
                logger.exception("%s: its job of %s cannot be made", schedule, at)
                wish.problem = wish.jobs[at] = f"{class_path(type(error))}: {first_line(str(error))}"
        return wish


def _tell(schedule: DueSchedule, fired: Fired, step: Step) -> None:
    for at, job_id in fired.jobs.items():
        logger.debug("%s: job %s for %s", schedule, job_id, at)
    for at, why in fired.skipped.items():
        logger.info("%s: no job for %s: %s", schedule, at, why)
    if step.missed:
        logger.warning("%s: %s%s occurrences were missed", schedule, step.missed, "+" if step.missed_more else "")
