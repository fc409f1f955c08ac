"""Many writers at once: SQLite's one lock, PostgreSQL's deadlocks, and a host clock that jumps."""

from __future__ import annotations

import ast
import logging
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import Count

import jobs
import jobs.store.database
import jobs.store.submit
from jobs import RetryPolicy, Status
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel as cancel_all
from jobs.store.database import database
from jobs.store.prune import prune
from jobs.store.requeue import requeue as requeue_all
from tests.support import tasks
from tests.support.engine import running
from tests.support.ground import ROOT
from tests.support.models import Effect
from tests.support.schedulers import FAST, scheduler
from tests.support.stepped import Stepped
from tests.support.waiting import wait_until


@contextmanager
def in_background(alias: str, *works: Callable[[], None]) -> Iterator[list[BaseException]]:
    """Threads that each do one thing again and again; what they raise is in the list."""
    over = threading.Event()
    raised: list[BaseException] = []

    def work(one: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                one()
        except BaseException as error:
            raised.append(error)
        finally:
            connections[alias].close()

    threads = [threading.Thread(target=work, args=(one,)) for one in works]
    for thread in threads:
        thread.start()
    try:
        yield raised
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def write_like_a_web_server(path: str) -> Callable[[], None]:
    """About 100 small transactions a second, each by a connection of its own."""
    pause = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO support_effect (label, at) VALUES ('web', '2027-01-01')")
            connection.execute("COMMIT")
        pause.wait(0.01)

    return write


def sqlite_under_writers(alias: str, size: int) -> None:
    path = connections[alias].settings_dict["NAME"]
    kinds = (tasks.leave_mark, tasks.aleave_mark)

    def click() -> None:
        """What people do in the admin."""
        row = tasks.add.using(delay=3600).enqueue(1)
        assert jobs.cancel(row)
        assert jobs.requeue(row, delay=3600)
        assert jobs.cancel(row)
        threading.Event().wait(0.05)

    with in_background(alias, write_like_a_web_server(path), click) as raised:
        rows = jobs.enqueue_many([kinds[n % 2].bind("mark") for n in range(size)])
        with scheduler(alias, jobs=FAST) as one, scheduler(alias, jobs=FAST) as two:
            left = Job.objects.using(alias).filter(pk__in=[row.pk for row in rows]).exclude(status="completed")
            wait_until(lambda: not left.exists(), timeout=30 + size / 10)
            assert one.running and two.running
    assert raised == []
    marks = Effect.objects.using(alias).filter(label="mark")
    assert marks.values("job_id").distinct().count() == marks.count() == size
    stored = Job.objects.using(alias).filter(pk__in=[row.pk for row in rows])
    assert set(stored.values_list("attempts", "failures", "losses")) == {(1, 0, 0)}


@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_jobs_on_sqlite_beside_busy_writers_run_once_and_none_fails_for_a_lock(live_database: str) -> None:
    sqlite_under_writers(live_database, 120)


@pytest.mark.slow
@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_two_thousand_jobs_on_sqlite_beside_busy_writers(live_database: str) -> None:
    sqlite_under_writers(live_database, 2000)


def soak(alias: str, seconds: float, caplog: pytest.LogCaptureFixture, schedulers: int) -> None:
    """Claimers, heartbeats, sweeps, prunes, bulk cancels and bulk retries over each other's rows."""
    rng = random.Random(7)
    policy = RetryPolicy(max_retries=5, base_delay=0.01)
    retried = tasks.misbehave.using(retry=policy)
    calls: list[Callable[[], Any]] = [
        lambda: tasks.add.bind(1),
        lambda: tasks.aadd.bind(1),
        lambda: tasks.sleep_in_thread.bind(0.01),
        lambda: retried.bind("value_error"),
    ]

    def some(status: str | None = None) -> list[int]:
        found = Job.objects.using(alias)
        ids = list((found.filter(status=status) if status else found).values_list("pk", flat=True)[:300])
        rng.shuffle(ids)
        return ids

    def submit() -> None:
        jobs.enqueue_many([rng.choice(calls)() for _ in range(100)])
        threading.Event().wait(0.1)

    def cancel() -> None:
        for job_id in some()[:30]:
            jobs.cancel(job_id)

    def cancel_many() -> None:
        cancel_all(database(alias), some())

    def requeue_many() -> None:
        requeue_all(database(alias), [*some("failed"), *some("cancelled")])

    def clear() -> None:
        prune(database(alias), dict.fromkeys((Status.COMPLETED, Status.CANCELLED), timedelta(0)))

    with ExitStack() as stack, caplog.at_level(logging.INFO):
        engines = [
            stack.enter_context(running(threads=2, async_slots=4, lease=2.0, renew=0.2, poll=0.1, name=f"engine {n}"))
            for n in range(schedulers)
        ]
        with in_background(alias, submit, cancel, cancel_many, requeue_many, clear) as raised:
            threading.Event().wait(seconds)
        assert raised == []
        assert [engine.dead_loops for engine in engines] == [[]] * schedulers
        left = Job.objects.using(alias).exclude(status__in=["completed", "failed", "cancelled"])
        wait_until(lambda: not left.exists(), timeout=60, what=f"nothing is left: {left[:5]}")
    complaints = [one.getMessage() for one in caplog.records if one.name == "jobs.engine.loop"]
    assert complaints == []
    assert not Attempt.objects.using(alias).filter(outcome="running").exists()


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_claims_heartbeats_sweeps_prunes_and_bulk_actions_never_deadlock(
    live_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    soak(live_database, 5.0, caplog, 2)


@pytest.mark.slow
@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_long_soak_of_four_schedulers_never_deadlocks(live_database: str, caplog: pytest.LogCaptureFixture) -> None:
    soak(live_database, 120.0, caplog, 4)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_step_of_the_host_clock_takes_no_living_job_away(
    live_database: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's clock is the host's: every lease is over at once, and two looks must tell the living from the dead."""
    monkeypatch.setattr(jobs.store.database, "datetime", Stepped)
    monkeypatch.setattr(Stepped, "by", timedelta(0))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + Stepped.by.total_seconds())
    with running(threads=2, lease=2.0, renew=0.3, poll=0.2), running(threads=2, lease=2.0, renew=0.3, poll=0.2):
        rows = [tasks.wait_at_gate.enqueue(f"clock {live_database} {hours} {n}") for n in range(3)]
        for n in range(3):
            assert tasks.gate(f"clock {live_database} {hours} {n}:in").wait(10)
        for _ in range(3):
            Stepped.by += timedelta(hours=hours)
            threading.Event().wait(1.0)  # three sweeps
        for n in range(3):
            tasks.gate(f"clock {live_database} {hours} {n}").set()
        wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows))
        Stepped.by = timedelta(0)
    assert {(jobs.get(row).attempts, jobs.get(row).losses) for row in rows} == {(1, 0)}


WALL_CLOCKS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today", "timezone.now"}


def test_no_code_below_the_doors_reads_the_host_clock_but_for_sqlite() -> None:
    """On PostgreSQL the database tells the time. What waits, waits by the monotonic clock."""
    found = {
        str(path.relative_to(ROOT))
        for layer in ("domain", "models", "store", "engine")
        for path in (ROOT / "jobs" / layer).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WALL_CLOCKS
    }
    # Each for SQLite alone.
    assert found == {"jobs/models/clock.py", "jobs/store/database.py", "jobs/store/submit.py"}


def test_submitting_on_postgresql_does_not_ask_the_host_clock(live_database: str, monkeypatch: Any) -> None:
    if live_database == "default":
        pytest.skip("SQLite's clock is the host's")
    for module in (jobs.store.database, jobs.store.submit):
        monkeypatch.setattr(module, "datetime", Stepped)
    monkeypatch.setattr(Stepped, "by", timedelta(hours=5))
    row = tasks.add.using(delay=0.01).enqueue(1)
    with running() as engine:
        assert engine.join(20)
    assert jobs.get(row).status == Status.COMPLETED
    counted = Job.objects.using(live_database).values("status").annotate(jobs=Count("pk"))
    assert list(counted) == [{"status": "completed", "jobs": 1}]
