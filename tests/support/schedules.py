"""Short words for tests of schedules: make rows and fire them at instants of one's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from jobs.domain.advance import advance
from jobs.domain.errors import InvalidRule
from jobs.domain.execution import Execution
from jobs.domain.recurrence import rule_from
from jobs.domain.status import TERMINAL
from jobs.models import Schedule
from jobs.models import schedule as schedule_module
from jobs.store.attention import attend
from jobs.store.database import Database
from jobs.store.fire import fire, flag, park
from jobs.store.prune import prune
from jobs.store.submit import Submission
from jobs.store.unblock import unblock
from tests.support.store import Bench


class Diary:
    """A bench with schedules: `round()` is what a planner does, without its thread."""

    def __init__(self, alias: str, bench: Bench | None = None) -> None:
        self.bench = bench or Bench(alias)
        self.alias = alias

    @property
    def now(self) -> datetime:
        return self.bench.now

    def turn(self, seconds: float) -> None:
        self.bench.turn(seconds)

    def schedule(self, **fields: Any) -> Schedule:
        if fields.get("interval_seconds"):
            fields.setdefault("anchor_at", self.now)
        row = Schedule(**{"name": "s", "task": "tests.work", **fields})
        self.save(row)
        return row

    def save(self, row: Schedule) -> None:
        with patch.object(schedule_module, "database_now", lambda using: self.now):
            row.save(using=self.alias)

    def round(self) -> int:
        """How many jobs were made."""
        return len(self.fire())

    def fire(self) -> list[datetime]:
        """The planned instants of the jobs that were made."""
        return [at for _, at in fire_due(self.bench.db)]

    def fire_nothing(self, problem: str) -> int:
        """How many schedules were moved on although their jobs could not be made."""
        fired = 0
        for schedule in attend(self.bench.db).due:
            step = advance(schedule.timing, self.now)
            reasons = dict.fromkeys(step.occurrences, problem)
            fired += fire(self.bench.db, schedule, step, reasons, problem=problem, actor="planner") is not None
        return fired

    def finish_all(self) -> None:
        unblock(self.bench.db)
        for claimed in self.bench.claim(1000):
            self.bench.close(claimed)

    def prune_everything(self) -> None:
        self.turn(0.000001)
        while prune(self.bench.db, dict.fromkeys(TERMINAL, timedelta(0))):
            pass


def fire_due(db: Database) -> list[tuple[int, datetime]]:
    """One look of a planner at the instant of `db`: schedule and planned instant of each job that was made."""
    assert db.instant is not None
    made: list[tuple[int, datetime]] = []
    for schedule in attend(db).due:
        try:
            if schedule.paused:
                park(db, schedule)
                continue
            step = advance(schedule.timing, db.instant)
            rule = rule_from(schedule.timing.rule)
        except InvalidRule as error:
            flag(db, schedule, str(error))
            continue
        wanted: dict[datetime, Submission | str] = {
            at: replace(submission(schedule.task), run_at=rule.run_at(at, schedule.name)) for at in step.occurrences
        }
        fired = fire(db, schedule, step, wanted, actor="planner")
        made += [(schedule.id, at) for at in fired.jobs] if fired else []
    return made


def submission(task: str) -> Submission:
    return Submission(
        task=task, queue="default", execution=Execution.THREAD, priority=0, arguments='{"args": [], "kwargs": {}}'
    )
