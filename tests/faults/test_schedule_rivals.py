"""Many planners over the same schedules: one job per planned instant, though history is pruned under them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.db import connections

import jobs
import jobs.models.schedule
import jobs.store.database
import jobs.store.submit
from jobs.models import Job, Occurrence
from jobs.store.attention import attend
from jobs.store.database import database
from tests.support import tasks
from tests.support.engine import running
from tests.support.schedulers import scheduler
from tests.support.schedules import Diary, fire_due
from tests.support.stepped import Stepped
from tests.support.store import START, Bench
from tests.support.waiting import wait_until

RIVALS = 5
SCHEDULES = 50
MINUTES = 10
TURN = 20
"""Seconds of the turned clock from one round to the next."""
AHEAD = 600
"""Seconds by which the clock of one host may be wrong."""


@dataclass(slots=True)
class Race:
    """Planners that look at the same time; `made` is what each of them believes to have made."""

    alias: str
    now: datetime = START
    over: threading.Event = field(default_factory=threading.Event)
    made: Counter[tuple[int, datetime]] = field(default_factory=Counter)
    ahead: dict[int, int] = field(default_factory=dict)
    """Seconds by which a rival's clock is wrong, by its number."""

    def run(self) -> None:
        rounds = MINUTES * 60 // TURN
        barrier = threading.Barrier(RIVALS, self._turn)
        with ThreadPoolExecutor(RIVALS + 1) as pool:
            pruner = pool.submit(self._prune)
            rivals = [pool.submit(self._plan, number, barrier, rounds) for number in range(RIVALS)]
            try:
                made = [rival.result(240) for rival in rivals]
            finally:
                barrier.abort()
                self.over.set()
            pruner.result(30)
        for one in made:
            self.made.update(one)

    def _turn(self) -> None:
        self.now += timedelta(seconds=TURN)

    def _plan(self, number: int, barrier: threading.Barrier, rounds: int) -> list[tuple[int, datetime]]:
        made: list[tuple[int, datetime]] = []
        with closed_connections():
            for _ in range(rounds):
                barrier.wait(120)
                db = database(self.alias, self.now + timedelta(seconds=self.ahead.get(number, 0)))
                while attend(db).due:
                    made += fire_due(db)
        return made

    def _prune(self) -> None:
        """Let every job end, and forget all that ever was: only the schedules' own rows are left."""
        with closed_connections():
            while not self.over.wait(0.01):
                diary = Diary(self.alias, bench_at(self.alias, self.now))
                diary.finish_all()
                diary.prune_everything()
                Occurrence.objects.using(self.alias).all().delete()


@contextmanager
def closed_connections() -> Iterator[None]:
    """This thread's own, at its end."""
    try:
        yield
    finally:
        connections.close_all()


def bench_at(alias: str, now: datetime) -> Bench:
    bench = Bench(alias)
    bench.now = now
    return bench


def minutes_of(alias: str) -> list[int]:
    """Fifty schedules of every minute; their ids."""
    diary = Diary(alias)
    return [diary.schedule(name=f"s{n}", interval_seconds=60, overlap="allow").pk for n in range(SCHEDULES)]


def every_minute(ids: list[int], minutes: int) -> Counter[tuple[int, datetime]]:
    return Counter((one, START + timedelta(minutes=n)) for one in ids for n in range(1, minutes + 1))


def test_five_planners_make_exactly_one_job_per_minute_of_each_schedule(live_database: str) -> None:
    ids = minutes_of(live_database)
    race = Race(live_database)
    race.run()
    assert sum(race.made.values()) == SCHEDULES * MINUTES == 500
    assert race.made == every_minute(ids, MINUTES)
    assert Job.objects.using(live_database).count() < 500  # it was pruned meanwhile


def test_hosts_ten_minutes_apart_make_each_occurrence_once(live_database: str) -> None:
    """As on SQLite, where each host has a clock of its own. What one has made early is made."""
    ids = minutes_of(live_database)
    race = Race(live_database, ahead={0: AHEAD, 1: -AHEAD})
    race.run()
    assert set(race.made.values()) == {1}
    # Coalesced by whoever was ahead, whose first look found ten minutes at once.
    first = START + timedelta(seconds=AHEAD)
    assert {at for _, at in race.made} == {first + timedelta(minutes=n) for n in range(MINUTES + 1)}
    assert len(race.made) == len(ids) * (MINUTES + 1)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
@pytest.mark.parametrize("seconds", [AHEAD, -AHEAD])
def test_on_postgresql_the_clock_of_a_host_makes_nothing_early_late_or_twice(
    live_database: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jobs.store.database, jobs.store.submit, jobs.models.schedule):
        monkeypatch.setattr(module, "datetime", Stepped)
    monkeypatch.setattr(Stepped, "by", timedelta(seconds=seconds))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)
    jobs.schedule_recurring(tasks.leave_mark, every=1, args=("mark",), allow_overlap=True, catch_up="all")
    made = Job.objects.using(live_database).order_by("id")
    with running():
        wait_until(lambda: made.count() >= 2, what="the host whose clock is wrong makes jobs")
        with scheduler(live_database):
            wait_until(lambda: made.count() >= 5, what="both make jobs")
    stored = list(made.values_list("scheduled_for", "submitted_at"))
    first = stored[0][0]
    assert [at for at, _ in stored] == [first + timedelta(seconds=n) for n in range(len(stored))]
    # By the database's clock, which also says when a job was submitted.
    assert all(timedelta(0) <= submitted_at - at < timedelta(seconds=5) for at, submitted_at in stored)
