"""A living scheduler whose statements and commits fail at any instant loses no claim, no outcome and no slot."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError

import jobs
from jobs import RetryPolicy
from jobs.engine.waker import Waker
from jobs.models import Attempt, Job
from jobs.store.database import Database, PostgreSQL, SQLite, database
from jobs.store.verify import verify
from tests.support import tasks
from tests.support.engine import running
from tests.support.models import Effect
from tests.support.story import Story, story_of
from tests.support.ticking import assert_each_instant_made_one_job, tick, ticks
from tests.support.waiting import wait_until

AGENTS = ("jobs-dispatcher", "jobs-recorder", "jobs-lease-keeper", "jobs-housekeeper", "jobs-planner", "jobs-waker")
Strike = Callable[[str, str], bool]
"""Whether to fail now, in this agent, at this point: before or after a statement, before or after a commit."""


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, strike: Strike) -> Iterator[None]:
    """The database fails in the engine's own threads when `strike` says so; the jobs' connections do not."""

    def reach(point: str) -> None:
        agent = threading.current_thread().name
        if agent in AGENTS and strike(agent, point):
            raise OperationalError(f"struck {point}")

    def watched(verb: Callable[..., Any]) -> Callable[..., Any]:
        def send(db: Database, sql: str, **parameters: Any) -> Any:
            words = " ".join(sql.split())
            reach(f"before {words}")
            answer = verb(db, sql, **parameters)
            reach(f"after {words}")
            return answer

        return send

    def committing(original: Any) -> Any:
        @contextmanager
        def transaction(db: Database) -> Iterator[None]:
            with original(db):
                yield
                reach("before commit")
            reach("after commit")

        return transaction

    def looking(original: Callable[[Waker], float]) -> Callable[[Waker], float]:
        def look(waker: Waker) -> float:
            reach("before the look")
            sleep = original(waker)
            reach("after the look")
            return sleep

        return look

    with monkeypatch.context() as patch:
        # It talks to its connection past the store.
        patch.setattr(Waker, "_listen", looking(Waker._listen))
        patch.setattr(Waker, "_look", looking(Waker._look))
        patch.setattr(Database, "rows", watched(Database.rows))
        patch.setattr(Database, "execute", watched(Database.execute))
        patch.setattr(PostgreSQL, "transaction", committing(PostgreSQL.transaction))
        patch.setattr(SQLite, "transaction", committing(SQLite.transaction))
        yield


class Once:
    """Strikes at the first point for which `when` holds, and never again."""

    def __init__(self, when: Callable[[str], bool]) -> None:
        self._when = when
        self.struck = False

    def __call__(self, agent: str, point: str) -> bool:
        if self.struck or not self._when(point):
            return False
        self.struck = True
        return True


def assert_each_ran_once(alias: str, rows: list[Job]) -> None:
    # The worker lived all the time: whatever it did not hear, it knows which bodies have run.
    assert {story_of(row).status for row in rows} == {"completed"}
    ran = Counter(Effect.objects.using(alias).values_list("job_id", flat=True))
    assert ran == dict.fromkeys((row.pk for row in rows), 1)
    assert not Job.objects.using(alias).exclude(losses=0, interruptions=0).exists()
    assert not Attempt.objects.using(alias).filter(outcome="running").exists()
    assert list(verify(database(alias), overdue_seconds=0.0)) == []


STATEMENTS: dict[str, Callable[[str], bool]] = {
    "the start of an at-most-once body": lambda point: "SET started_at" in point and "jobs_attempt" in point,
    "the look for cancel requests": lambda point: "cancel_requested_at IS NOT NULL" in point and "SELECT" in point,
    "the claim": lambda point: "INSERT INTO jobs_attempt" in point,
    "the record": lambda point: "UPDATE jobs_attempt SET outcome" in point,
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("statement", list(STATEMENTS))
def test_a_statement_that_fails_costs_no_claim_its_run(
    live_database: str, monkeypatch: pytest.MonkeyPatch, statement: str, when: str
) -> None:
    marks: list[Any] = [tasks.leave_mark, tasks.aleave_mark]
    rows = [task.using(at_most_once=at_most_once).enqueue("ran") for at_most_once in (True, False) for task in marks]
    matches = STATEMENTS[statement]
    strike = Once(lambda point: point.startswith(when) and matches(point))
    with failing(monkeypatch, strike), running(lease=60.0) as scheduler:
        assert scheduler.join(20), [story_of(row) for row in rows]
        assert scheduler.in_flight.in_flight() == 0
    assert strike.struck
    assert_each_ran_once(live_database, rows)


OCCURRENCE: dict[str, Callable[[str], bool]] = {
    "the look at the schedules": lambda point: "planned_rule <> " in point and "SELECT" in point,
    "its record": lambda point: "INSERT INTO jobs_occurrence" in point,
    "its job": lambda point: "UPDATE jobs_occurrence SET job_id" in point,
    "the move of its schedule": lambda point: "UPDATE jobs_schedule SET next_run_at" in point,
    "its commit": lambda point: "commit" in point,
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("statement", list(OCCURRENCE))
def test_an_occurrence_that_fails_anywhere_is_made_once(
    live_database: str, monkeypatch: pytest.MonkeyPatch, statement: str, when: str
) -> None:
    matches = OCCURRENCE[statement]
    strike = Once(lambda point: point.startswith(when) and matches(point))
    tick()
    with failing(monkeypatch, lambda agent, point: agent == "jobs-planner" and strike(agent, point)):
        with running(lease=60.0) as scheduler:
            wait_until(lambda: ticks(live_database) >= 2)
            assert scheduler.dead_loops == []
    assert strike.struck
    assert_each_instant_made_one_job(live_database)


def fail_at_random(alias: str, monkeypatch: pytest.MonkeyPatch, rng: random.Random, count: int) -> None:
    at_once = RetryPolicy(max_retries=3, base_delay=0, jitter=False)
    bound = [
        [
            tasks.leave_mark.bind("ran"),
            tasks.aleave_mark.bind("ran"),
            tasks.leave_mark.using(at_most_once=True).bind("ran"),
            tasks.aleave_mark.using(at_most_once=True, delay=0.2).bind("ran"),
        ][number % 4]
        for number in range(count)
    ]
    rows = jobs.enqueue_many(bound)
    tries = tasks.fail_twice.using(retry=at_once).enqueue()
    tick(4.0)
    calm = threading.Event()
    with failing(monkeypatch, lambda agent, point: not calm.is_set() and rng.random() < 0.04):
        with running(lease=60.0, threads=2, claim_ahead=0.05) as scheduler:
            scheduler.join(5)
            calm.set()
            assert scheduler.join(30), Counter(job.status for job in Job.objects.using(alias))
            assert scheduler.in_flight.in_flight() == 0
            assert scheduler.dead_loops == []
    assert story_of(tries) == Story("completed", ["failed", "failed", "completed"], ["ValueError"] * 2, 3)
    assert_each_ran_once(alias, rows)
    assert ticks(alias) >= 3
    assert_each_instant_made_one_job(alias)


@pytest.mark.parametrize("seed", range(2))
def test_a_database_that_fails_now_and_then_costs_no_job_its_run(
    live_database: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    fail_at_random(live_database, monkeypatch, random.Random(seed), 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_the_same_over_and_over(live_database: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    fail_at_random(live_database, monkeypatch, random.Random(1000 + seed), 200)
