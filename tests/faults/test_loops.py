"""Whatever loses its connection gets it back; what dies takes the process with it, so that somebody restarts it."""

from __future__ import annotations

import itertools
import logging
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connections
from django.db.backends.postgresql.base import DatabaseWrapper

import jobs
from jobs import Status
from jobs.engine.loop import Loop
from tests.support import tasks
from tests.support.engine import running
from tests.support.ground import lay_ground
from tests.support.postgres import PostgresServer
from tests.support.processes import manage
from tests.support.schedulers import FAST, STARTED
from tests.support.ticking import assert_each_instant_made_one_job, tick, wait_for_another
from tests.support.waiting import wait_until

AGENTS = {"dispatcher", "recorder", "lease-keeper", "housekeeper", "planner", "waker"}
on_postgresql = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


def others(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def terminate_others(alias: str) -> int:
    """Every backend of this database but the caller's."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def tell_off(caplog: pytest.LogCaptureFixture) -> dict[str, int]:
    """How often each agent complained."""
    said = [one.getMessage() for one in caplog.records if one.name == "jobs.engine.loop"]
    return {agent: sum(line.startswith(f"{agent}: the database failed") for line in said) for agent in AGENTS}


def works(alias: str) -> bool:
    row = tasks.add.enqueue(1)
    wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=40, what="it works again")
    return True


@on_postgresql
def test_terminated_backends_are_replaced_and_nobody_traces_back(
    live_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    tick()
    with running(lease=3.0, renew=0.5) as engine:
        assert works(live_database)
        for _ in range(5):
            wait_until(lambda: others(live_database) >= 5, what="all are connected")
            assert terminate_others(live_database) >= 5
            assert works(live_database)
            wait_for_another(live_database)
        assert engine.dead_loops == []
    assert_each_instant_made_one_job(live_database)
    assert not [one for one in caplog.records if one.name == "jobs.engine.loop" and one.exc_info]


@on_postgresql
def test_a_host_name_that_does_not_resolve_for_a_while(
    live_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = DatabaseWrapper.get_connection_params
    lost = threading.Event()

    def parameters(self: DatabaseWrapper) -> dict[str, Any]:
        return {**real(self), **({"host": "nowhere.invalid"} if lost.is_set() else {})}

    monkeypatch.setattr(DatabaseWrapper, "get_connection_params", parameters)
    with running(lease=3.0, renew=0.5) as engine, caplog.at_level(logging.INFO):
        row = tasks.wait_at_gate.enqueue("dns")
        assert tasks.gate("dns:in").wait(10)
        lost.set()
        terminate_others(live_database)
        wait_until(lambda: min(tell_off(caplog)[one] for one in AGENTS - {"recorder"}) == 1, what="all have noticed")
        tasks.gate("dns").set()
        wait_until(lambda: tell_off(caplog)["recorder"] == 1)
        lost.clear()
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=40)
        assert works(live_database)
        assert engine.dead_loops == []
    assert (jobs.get(row).attempts, jobs.get(row).losses) == (1, 0)
    assert max(tell_off(caplog).values()) <= 2


@contextmanager
def read_only(alias: str) -> Iterator[None]:
    """What clients meet that are led to a standby: every new session refuses to write."""
    name = connections[alias].settings_dict["NAME"]
    with connections[alias].cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        terminate_others(alias)
        try:
            yield
        finally:
            cursor.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            terminate_others(alias)


@on_postgresql
def test_a_read_only_failover_loses_no_outcome_and_no_detail_of_it(
    live_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    tick()
    with running(lease=60.0, renew=20.0) as engine:
        row = tasks.wait_at_gate.enqueue("standby")
        failing = tasks.misbehave.using(retry=None).enqueue("value_error")
        wait_until(lambda: jobs.get(failing).status == Status.FAILED)
        assert tasks.gate("standby:in").wait(10)
        with read_only(live_database):
            tasks.gate("standby").set()
            # Its first error is the terminated connection; a second row of errors would not be told for a while.
            wait_until(lambda: engine._recorder.loop.errors >= 3, what="the recorder meets the standby, twice")
            later = tasks.add.enqueue(1)
            wait_until(lambda: engine._dispatcher.loop.errors >= 3, what="so does the dispatcher")
            assert engine._planner is not None
            wait_until(lambda: engine._planner.loop.errors >= 3, what="and the planner")
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=40)
        wait_until(lambda: jobs.get(later).status == Status.COMPLETED, timeout=40)
        wait_for_another(live_database)
        assert engine.dead_loops == []
    assert (jobs.get(row).result, jobs.get(row).attempts, jobs.get(row).losses) == ("standby", 1, 0)
    assert not [one for one in caplog.records if "cannot be stored" in one.getMessage()]
    assert_each_instant_made_one_job(live_database)


@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_a_writer_that_holds_sqlite_for_longer_than_the_busy_timeout(
    live_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = connections.settings[live_database]
    monkeypatch.setitem(settings, "OPTIONS", {**settings["OPTIONS"], "timeout": 0.1})
    tick()
    with running(threads=2, lease=3.0, renew=0.5, poll=0.1) as engine:
        row = tasks.wait_at_gate.enqueue("busy")
        assert tasks.gate("busy:in").wait(10)
        with closing(sqlite3.connect(connections[live_database].settings_dict["NAME"], timeout=20)) as writer:
            writer.isolation_level = None
            writer.execute("BEGIN IMMEDIATE")
            tasks.gate("busy").set()
            wait_until(lambda: tell_off(caplog)["recorder"] == 1, what="the recorder gives up waiting")
            wait_until(lambda: tell_off(caplog)["lease-keeper"] == 1)
            wait_until(lambda: tell_off(caplog)["planner"] == 1)
            writer.execute("ROLLBACK")
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=30)
        assert works(live_database)
        wait_for_another(live_database)
        assert engine.dead_loops == []
    assert (jobs.get(row).attempts, jobs.get(row).losses) == (1, 0)
    assert_each_instant_made_one_job(live_database)


def test_a_backoff_is_capped_jittered_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    waits: list[float] = []

    def fail() -> float:
        if len(waits) >= 40:
            loop.ask_to_stop()
        raise OperationalError("away\nwith a second line")

    loop = Loop("patient", fail, longest_backoff=2.0)
    loop._rng = random.Random(1)

    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return self.is_set()

    loop._stopping = Stopping()
    with caplog.at_level(logging.INFO):
        loop.start()
        wait_until(lambda: not loop.alive, timeout=10)
    assert max(waits) <= 2.0
    assert waits[0] <= 0.1 and min(waits[20:]) >= 1.0
    assert len({round(one, 6) for one in waits[20:]}) > 10
    assert [one.getMessage() for one in caplog.records] == ["patient: the database failed: away; trying again"]


def test_a_loop_survives_an_exit_from_whatever_it_calls() -> None:
    rounds: list[int] = []
    again = threading.Event()

    def leave() -> float:
        rounds.append(1)
        if len(rounds) > 1:
            again.set()
            return 60.0
        raise SystemExit

    loop = Loop("stubborn", leave)
    loop.start()
    assert again.wait(10)
    assert loop.alive
    assert loop.stop(time.monotonic() + 10.0)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server that a test may restart: the run's own is everybody's."""
    if not lay_ground().postgres_url:
        pytest.skip(f"no PostgreSQL: {lay_ground().reason}")
    directory = lay_ground().directory / "own"
    directory.mkdir()
    directory.chmod(0o711)
    server = PostgresServer(directory / "postgres")
    try:
        server.start()
        yield server
    finally:
        server.stop()


SUBMIT = """
import jobs
from tests.support import tasks
from tests.support.ticking import tick
tick()
jobs.enqueue_many([tasks.sleep_in_thread.bind(0.01) for _ in range(200)])
tasks.sleep_in_thread.enqueue(3), tasks.sleep_in_process.enqueue(3), tasks.sleep_on_loop.enqueue(3)
"""


@pytest.mark.parametrize("how", [pytest.param("fast", marks=pytest.mark.slow), "immediate"])
def test_a_scheduler_outlives_restarts_of_its_server(own_server: PostgresServer, how: str) -> None:
    name = f"restarted_{how}"
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        # The run's servers may lose what was just committed, which nobody could make up for.
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    url = own_server.url.rpartition("/")[0] + f"/{name}"
    with manage("migrate", "--run-syncdb", "--verbosity=0", database_url=url) as migration:
        assert migration.wait(120) == 0, migration.output
    with manage("runscheduler", "--threads=4", "--async=4", "--processes=1", database_url=url, jobs=FAST) as worker:
        worker.wait_for(STARTED)
        with manage("shell", "-c", SUBMIT, database_url=url) as submit:
            assert submit.wait(60) == 0, submit.output
        for _ in range(2):
            own_server.restart(immediately=how == "immediate")
            before = ended(url)
            wait_until(lambda before=before: ended(url) > before or before == 203, timeout=40)  # type: ignore[misc]
        wait_until(lambda: ended(url) == 203, timeout=60, what="all have ended")
        with manage("jobs", "verify", database_url=url, jobs=FAST) as checked:
            assert checked.wait(60) == 0, checked.output
        worker.send(signal.SIGTERM)
        assert worker.wait(40) == 0, worker.output
    assert "Traceback" not in worker.output, worker.output
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT status, failures, losses, count(*) FROM jobs_job WHERE schedule_id IS NULL GROUP BY 1, 2, 3"
        ).fetchall()
        planned = connection.execute("SELECT scheduled_for FROM jobs_job WHERE schedule_id > 0 ORDER BY 1").fetchall()
    assert found == [("completed", 0, 0, 203)]
    steps = {later - earlier for (earlier,), (later,) in itertools.pairwise(planned)}
    assert len(planned) > 2 and steps == {timedelta(seconds=1)}, "one job for each second, through both restarts"


def ended(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM jobs_job WHERE ended_at IS NOT NULL AND schedule_id IS NULL"
        ).fetchone()
    assert row is not None
    return int(row[0])
