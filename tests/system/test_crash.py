"""A worker that is killed: its jobs run again within the lease and two sweeps, whoever does it."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.db import connections
from django.db.models import Count

import jobs
from jobs import Status
from jobs.models import Attempt, Job, Worker
from tests.support import tasks
from tests.support.engine import running
from tests.support.models import Effect
from tests.support.processes import ChildProcess
from tests.support.schedulers import FAST, no_process, orphaned, scheduler, statuses
from tests.support.waiting import wait_until

SWEEP = FAST["RENEW"] + 0.01
SLACK = 2.0
"""For a busy machine; the lease is longer."""
PATIENT = {**FAST, "LEASE": 8}
"""A lease that is not over when another process has started."""


def start_one_of_each(alias: str, label: str = "victim", until: str = "") -> list[Job]:
    """Three submitted jobs of which each has begun its first attempt."""
    rows = [task.enqueue(label, until) for task in (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)]
    begun = Effect.objects.using(alias).filter(label=label, attempt=1)
    wait_until(lambda: begun.count() == len(rows), what="one job of each execution has begun")
    return rows


def kill(process: ChildProcess) -> datetime:
    """Kill it with its process group, as the kernel does when memory runs out; when that was."""
    below = [one.pid for one in process.descendants()]
    process.send(signal.SIGKILL, group=True)
    at = datetime.now(timezone.utc)
    process.wait()
    wait_until(lambda: all(no_process(pid) for pid in below), what="its child processes notice")
    return at


def assert_run_again(alias: str, rows: list[Job], *, within: timedelta, since: datetime) -> None:
    wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows), what="all have run again")
    for row in rows:
        stored = jobs.get(row)
        lost, done = Attempt.objects.using(alias).filter(job_id=row.pk).order_by("number")
        assert (lost.outcome, done.outcome, stored.losses, stored.failures) == ("lost", "completed", 1, 0)
        # After its first loss a job runs alone in a child process.
        assert stored.execution == "process"
        assert lost.ended_at is not None
        assert lost.ended_at - since < within
        assert done.claimed_at - since < within
    assert orphaned(alias) == 0


def test_jobs_of_a_killed_worker_are_run_again_by_another(live_database: str) -> None:
    with scheduler(live_database, "--name=one", jobs=FAST) as victim:
        rows = start_one_of_each(live_database)
        with scheduler(live_database, "--name=two", jobs=FAST) as other:
            killed_at = kill(victim)
            # Recovery depends on nothing but the attempts' own leases.
            Worker.objects.using(live_database).filter(name="one").delete()
            within = timedelta(seconds=FAST["LEASE"] + 2 * SWEEP + SLACK)
            assert_run_again(live_database, rows, within=within, since=killed_at)
            other.send(signal.SIGTERM)
            assert other.wait() == 0, other.output


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_jobs_of_a_killed_worker_are_run_again_by_a_restart_under_the_same_name(live_database: str) -> None:
    with scheduler(live_database, "--name=one", jobs=PATIENT) as victim:
        rows = start_one_of_each(live_database)
        kill(victim)
    with scheduler(live_database, "--name=one", jobs=PATIENT):
        restarted_at = datetime.now(timezone.utc)
        held = Attempt.objects.using(live_database).filter(outcome="running", lease_until__gt=restarted_at)
        assert held.count() == 3, "the second one has started too late for this test"
        within = timedelta(seconds=PATIENT["LEASE"] + 2 * SWEEP + SLACK)
        assert_run_again(live_database, rows, within=within, since=restarted_at)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_killed_child_process_costs_only_its_own_job(live_database: str) -> None:
    with scheduler(live_database) as worker:
        *others, victim = start_one_of_each(live_database)
        pid = Effect.objects.using(live_database).get(job_id=victim.pk).pid
        assert pid not in (None, worker.pid)
        os.kill(pid, signal.SIGKILL)
        # At once, although the lease has a minute to go: the parent sees its child die.
        wait_until(lambda: jobs.get(victim).status == Status.COMPLETED)
        assert (jobs.get(victim).losses, jobs.get(victim).attempts) == (1, 2)
        assert [(jobs.get(row).status, jobs.get(row).attempts) for row in others] == [(Status.RUNNING, 1)] * 2


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_worker_killed_in_full_flow_loses_no_job_and_repeats_only_what_it_held(live_database: str) -> None:
    size = 600
    effects = Effect.objects.using(live_database)
    with scheduler(live_database, jobs=FAST) as victim, scheduler(live_database, jobs=FAST):
        jobs.enqueue_many([tasks.sleep_in_thread.bind(0.02, "flow") for _ in range(size)])
        wait_until(lambda: effects.filter(pid=victim.pid).exists(), what="the victim runs jobs")
        kill(victim)
        wait_until(lambda: statuses(live_database) == {"completed": size}, timeout=60)
    assert effects.values("job_id").distinct().count() == size
    repeated = set(
        effects.values("job_id").annotate(times=Count("id")).filter(times__gt=1).values_list("job_id", flat=True)
    )
    lost = set(Attempt.objects.using(live_database).filter(outcome="lost").values_list("job_id", flat=True))
    assert lost
    assert repeated <= lost
    assert orphaned(live_database) == 0


def cut_all_connections(alias: str) -> None:
    """As a restart of the server does, all but this thread's own."""
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        assert len(cursor.fetchall()) > 3


def wait_for_completed(alias: str, number: int) -> None:
    wait_until(lambda: statuses(alias).get("completed", 0) == number, what=f"{number} jobs are completed")


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_cut_connections_lose_no_job_and_no_outcome(live_database: str, tmp_path: Path) -> None:
    until = tmp_path / "leave"
    with scheduler(live_database, jobs=FAST) as worker:
        rows = start_one_of_each(live_database, until=str(until))
        for number in (1, 2, 3):
            cut_all_connections(live_database)
            # Its agents are back: what is submitted now is heard of, run and recorded.
            tasks.leave_mark.enqueue("after the cut")
            wait_for_completed(live_database, number)
        until.touch()
        wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows), what="all are recorded")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    assert [(jobs.get(row).attempts, jobs.get(row).losses) for row in rows] == [(1, 0)] * 3
    assert "Traceback" not in worker.output, worker.output


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_cut_connection_of_the_asking_thread_fails_neither_join_nor_stop(live_database: str) -> None:
    tasks.add.enqueue(1)
    with running() as worker:
        connections[live_database].connection.close()
        assert worker.join(10)
        connections[live_database].connection.close()
        worker.stop()
        connections[live_database].close()
        assert not Worker.objects.using(live_database).exists()
