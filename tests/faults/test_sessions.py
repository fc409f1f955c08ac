"""What a job does to its database session: the next job on the slot finds a clean one, and the engine feels nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

import jobs
from jobs.engine import session
from jobs.models import Job
from tests.support import faulty, messy, tasks
from tests.support.engine import running
from tests.support.models import Effect
from tests.support.story import Story, failure_of, story_of
from tests.support.waiting import wait_until

ON_POSTGRESQL = [
    "SET statement_timeout = 1",
    "SET search_path = pg_catalog",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET default_transaction_read_only = on",
    "SELECT set_config('statement_timeout', '1', false)",
    "SELECT 1; SET statement_timeout = 1",
    "DO $$ BEGIN PERFORM set_config('lock_timeout', '1', false); END $$",
    "SELECT pg_advisory_lock(7)",
]
ENGINE = 6 + 1
"""Sessions of a scheduler without jobs: its five agents and whoever waits for it; and the test's own."""
on_postgresql = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


def finish(**overrides: Any) -> None:
    with running(**{"threads": 1, "async_slots": 1, **overrides}) as scheduler:
        assert scheduler.join(60)
        assert scheduler.dead_loops == []


def assert_clean(alias: str, before: Job, after: Job) -> None:
    first, second = jobs.get(before), jobs.get(after)
    assert (first.status, second.status) == ("completed", "completed"), story_of(after)
    assert second.result == first.result
    assert second.attempts == 1


@on_postgresql
@pytest.mark.parametrize("statement", ON_POSTGRESQL)
def test_a_setting_that_a_job_made_does_not_reach_the_next(live_database: str, statement: str) -> None:
    before = faulty.session.enqueue(live_database)
    faulty.change_session.enqueue(statement, live_database)
    after = faulty.session.enqueue(live_database)
    finish()
    assert_clean(live_database, before, after)


@on_postgresql
@pytest.mark.parametrize("connect_first", [True, False])
def test_a_time_zone_set_past_django_does_not_reach_the_next(live_database: str, connect_first: bool) -> None:
    before = faulty.session.enqueue(live_database)
    if not connect_first:
        messy.close_connection.enqueue(live_database)
    faulty.change_session_raw.enqueue("SET TIME ZONE 'Asia/Tokyo'", live_database)
    after = faulty.session.enqueue(live_database)
    finish()
    assert_clean(live_database, before, after)


@on_postgresql
def test_it_does_not_in_a_child_process_either(live_database: str) -> None:
    in_process = {"execution": "process"}
    before = faulty.session.using(**in_process).enqueue(live_database)
    faulty.change_session.using(**in_process).enqueue("SET statement_timeout = 1", live_database)
    after = faulty.session.using(**in_process).enqueue(live_database)
    finish(processes=1)
    assert_clean(live_database, before, after)


@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_a_pragma_that_a_job_set_does_not_reach_the_next(live_database: str) -> None:
    before = faulty.session.enqueue(live_database)
    faulty.change_session.enqueue("PRAGMA query_only = 1", live_database)
    after = faulty.session.enqueue(live_database)
    finish()
    assert_clean(live_database, before, after)


@on_postgresql
def test_jobs_that_leave_their_session_alone_share_one_connection(live_database: str) -> None:
    found = [faulty.backend.enqueue(live_database) for _ in range(5)]
    finish()
    assert len({jobs.get(row).result for row in found}) == 1


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT 1", False),
        (' INSERT INTO "x" VALUES (%s)', False),
        ("(SELECT 1) UNION (SELECT 2)", False),
        ("update x set y = 1", False),
        ("SET LOCAL statement_timeout = 1", False),
        ("SET CONSTRAINTS ALL IMMEDIATE", False),
        ("SAVEPOINT a", False),
        ("SELECT pg_advisory_xact_lock(1)", False),
        ("set statement_timeout = 1", True),
        ("RESET ALL", True),
        ("LISTEN x", True),
        ("CREATE TEMP TABLE x (y int)", True),
        ("SELECT * INTO TEMP x FROM y", True),
        ("SELECT 1;", False),
        ("SELECT 1; SELECT 2", True),
        (object(), True),
    ],
)
def test_statements_are_told_apart(sql: object, changes: bool) -> None:
    assert session.changes_session(sql) is changes


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (faulty.begin_raw, "the job returned with a transaction open on {}: it was rolled back"),
        (faulty.close_inside_atomic, "the job closed its connection to {} inside a transaction: it was rolled back"),
    ],
    ids=["begin", "close"],
)
def test_an_open_transaction_is_rolled_back_and_said(live_database: str, task: Any, said: str) -> None:
    before = faulty.session.enqueue(live_database)
    bad = task.enqueue(live_database)
    after = faulty.session.enqueue(live_database)
    finish()
    assert_clean(live_database, before, after)
    assert story_of(bad) == Story("failed", ["failed"], ["TransactionLeftOpen"])
    assert failure_of(jobs.get(bad)).message == said.format(live_database)
    assert not Effect.objects.using(live_database).filter(label="lost").exists()


def test_a_swallowed_error_does_not_reach_the_next(live_database: str) -> None:
    """Nor does anybody see it: PostgreSQL rolls that transaction back, and Django's commit does not say so."""
    before = faulty.session.enqueue(live_database)
    bad = faulty.swallow_an_error.enqueue(live_database)
    after = faulty.session.enqueue(live_database)
    finish()
    assert_clean(live_database, before, after)
    assert story_of(bad) == Story("completed", ["completed"])
    kept = live_database == "default"  # SQLite undoes the one statement only
    assert Effect.objects.using(live_database).filter(label="before the error").exists() is kept


@on_postgresql
def test_a_connection_cut_off_while_the_slot_was_idle_costs_no_attempt(live_database: str) -> None:
    """Also without health checks: outside requests Django would find out by failing."""
    databases = connections.settings[live_database]
    configured = {name: databases[name] for name in ("CONN_MAX_AGE", "CONN_HEALTH_CHECKS")}
    databases.update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=False)
    try:
        with running(threads=1) as scheduler:
            first = faulty.backend.enqueue(live_database)
            assert scheduler.join(20)
            with connections[live_database].cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [jobs.get(first).result])
            second = faulty.backend.enqueue(live_database)
            assert scheduler.join(20)
    finally:
        databases.update(configured)
    stored = jobs.get(second)
    assert (stored.status, stored.attempts) == ("completed", 1), story_of(second)
    assert stored.result != jobs.get(first).result


def test_a_job_that_locks_its_own_row_delays_nobody(live_database: str, tmp_path: Path) -> None:
    if live_database == "default":
        pytest.skip("SQLite has one writer: whoever holds a transaction open delays everybody")
    with running(threads=2, lease=2.0, renew=0.4) as scheduler:
        mine = faulty.lock_own_row.enqueue(str(tmp_path), live_database)
        wait_until(Path(tmp_path, "locked").exists)
        others = [tasks.add.enqueue(n) for n in range(20)]
        wait_until(lambda: all(jobs.get(row).status == "completed" for row in others), timeout=15)
        assert jobs.cancel(tasks.add.using(delay=3600).enqueue(1))
        Path(tmp_path, "open").touch()
        assert scheduler.join(20)
    assert (jobs.get(mine).status, jobs.get(mine).attempts) == ("completed", 1)


@on_postgresql
@pytest.mark.parametrize("max_age", [0, 600, None])
def test_sessions_never_exceed_the_slots_and_go_when_they_are_idle(
    live_database: str, max_age: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 300
    databases = connections.settings[live_database]
    monkeypatch.setitem(databases, "CONN_MAX_AGE", max_age)
    monkeypatch.setattr("jobs.engine.executors.thread.CONNECTED_IDLE_SECONDS", 0.5)
    with running(threads=10, async_slots=10, poll=0.5) as scheduler:
        assert scheduler.join(10)
        kinds = (faulty.count_effects, faulty.acount_effects)
        jobs.enqueue_many([kinds[n % 2].bind(live_database) for n in range(size)])
        most = 0
        while not scheduler.join(0.02):
            most = max(most, sessions(live_database))
        assert most <= 20 + ENGINE
        wait_until(lambda: sessions(live_database) <= ENGINE, what="back to the engine's own")
    assert set(Job.objects.using(live_database).values_list("status", "attempts")) == {("completed", 1)}


@on_postgresql
def test_no_session_of_the_scheduler_is_in_a_transaction_while_a_job_runs(live_database: str) -> None:
    with running(threads=2, poll=0.1, renew=0.2, lease=2.0):
        row = tasks.wait_at_gate.enqueue("long")
        assert tasks.gate("long:in").wait(10)
        # A transaction lasts for milliseconds: none is seen twice.
        seen = [open_transactions(live_database) for _ in pauses(30)]
        assert not set.intersection(*seen[:15], *seen[15:])
        tasks.gate("long").set()
        wait_until(lambda: jobs.get(row).status == "completed")


def pauses(times: int) -> Iterator[int]:
    for number in range(times):
        threading.Event().wait(0.05)
        yield number


def sessions(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def open_transactions(alias: str) -> set[tuple[int, Any]]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT pid, xact_start FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%%'"
        )
        return set(cursor.fetchall())


def test_a_retry_policy_that_exits_ends_no_thread_of_the_engine(live_database: str, tmp_path: Path) -> None:
    """After a timeout it is asked on the timekeeper's thread, which every other job's timeout needs."""
    with running(threads=2) as scheduler:
        rows = [faulty.exit_in_backoff.enqueue(str(tmp_path)) for _ in range(2)]
        wait_until(lambda: all(jobs.get(row).status == "timed_out" for row in rows), timeout=15)
        Path(tmp_path, "open").touch()
        assert scheduler.dead_loops == []
        assert scheduler.join(10)
    assert [story_of(row).outcomes for row in rows] == [["timed_out"]] * 2
