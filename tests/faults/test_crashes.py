"""kill -9 in the middle: jobs are lost and run again in time, poison jobs give up, at most once means at most once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db.models import Max, Q
from django.utils import timezone

import jobs
from jobs import Status
from jobs.models import Attempt, Job, Worker
from tests.support import faulty, tasks
from tests.support.models import Effect, effects
from tests.support.processes import ChildProcess
from tests.support.schedulers import FAST, no_process, scheduler
from tests.support.story import Story, failure_of, story_of
from tests.support.waiting import wait_until

SWEEP = FAST["RENEW"] + 0.01
WITHIN = timedelta(seconds=FAST["LEASE"] + 2 * SWEEP + 2.0)
"""The lease, two sweeps, and slack for a busy machine."""
ONE_OF_EACH = (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)


def kill(process: ChildProcess) -> datetime:
    """With its whole process group; when that was."""
    below = [one.pid for one in process.descendants()]
    process.send(signal.SIGKILL, group=True)
    at = timezone.now()
    process.wait()
    wait_until(lambda: all(no_process(pid) for pid in below), what="its child processes notice")
    return at


@contextmanager
def rescuer(alias: str, kind: str) -> Iterator[None]:
    """Who takes the jobs back."""
    if kind == "nobody yet":
        yield
        return
    with scheduler(alias, "--name=two", jobs=FAST):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("row", ["kept", "deleted"])
@pytest.mark.parametrize("name", ["one", "another"])
@pytest.mark.parametrize("kind", ["second scheduler", "nobody yet"])
def test_jobs_of_a_killed_worker_run_again_in_time(live_database: str, kind: str, name: str, row: str) -> None:
    for _ in range(3):
        Effect.objects.using(live_database).all().delete()
        with scheduler(live_database, "--name=one", jobs=FAST) as victim:
            rows = [task.enqueue("killed") for task in ONE_OF_EACH]
            wait_until(lambda: effects(live_database, "killed") == 3, what="one of each has begun")
            with rescuer(live_database, kind):
                since = kill(victim)
                if row == "deleted":
                    Worker.objects.using(live_database).filter(name="one").delete()
                with scheduler(live_database, f"--name={name}", jobs=FAST):
                    if kind == "nobody yet":
                        since = timezone.now()
                    wait_until(lambda: all(jobs.get(one).status == Status.COMPLETED for one in rows))  # noqa: B023
        for one in rows:
            lost, done = Attempt.objects.using(live_database).filter(job_id=one.pk).order_by("number")
            assert (lost.outcome, done.outcome) == ("lost", "completed")
            assert lost.ended_at is not None and lost.ended_at - since < WITHIN
            assert done.claimed_at - since < WITHIN
            assert (jobs.get(one).losses, jobs.get(one).failures) == (1, 0)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_restart_under_the_same_name_before_the_lease_ends_keeps_nothing_alive(live_database: str) -> None:
    """Its heartbeats are the new process's: what the old one held is nobody's, also when its row is gone."""
    # Long enough that the second one has started before it ends, also on a busy machine.
    patient = {**FAST, "LEASE": 10}
    within = WITHIN + timedelta(seconds=patient["LEASE"] - FAST["LEASE"])
    with scheduler(live_database, "--name=one", jobs=patient) as victim:
        rows = [task.enqueue("killed") for task in ONE_OF_EACH]
        wait_until(lambda: effects(live_database, "killed") == 3)
        killed_at = kill(victim)
    with scheduler(live_database, "--name=one", jobs=patient):
        held = Attempt.objects.using(live_database).filter(outcome="running", lease_until__gt=timezone.now())
        assert held.count() == 3, "the second one has started too late for this test"
        assert Worker.objects.using(live_database).filter(name="one").count() == 2
        Worker.objects.using(live_database).all().delete()
        wait_until(lambda: all(jobs.get(one).status == Status.COMPLETED for one in rows), timeout=40)
        wait_until(lambda: Worker.objects.using(live_database).exists(), what="its row is made anew")
    last = Attempt.objects.using(live_database).aggregate(
        lost=Max("ended_at", filter=Q(outcome="lost")), again=Max("claimed_at", filter=Q(outcome="completed"))
    )
    assert last["lost"] - killed_at < within and last["again"] - killed_at < within


POISON = {"thread": faulty.kill_own_process, "process": faulty.pkill_own_process}


@pytest.mark.parametrize("execution", POISON)
def test_a_job_that_kills_its_process_every_time_gives_up_and_harms_nobody(live_database: str, execution: str) -> None:
    neighbours = [(tasks.sleep_in_thread, tasks.sleep_on_loop, tasks.sleep_in_process)[n % 3] for n in range(20)]
    rows = jobs.enqueue_many([*(one.bind(0.05) for one in neighbours[:10]), POISON[execution].bind()])
    rows += jobs.enqueue_many([one.bind(0.05) for one in neighbours[10:]])
    deaths = 0
    for _ in range(3):
        with scheduler(live_database, jobs=FAST) as worker:
            wait_until(
                lambda: not worker.running or all(jobs.get(row).is_finished for row in rows),
                timeout=60,
                what="all have ended, or the worker is dead",
            )
            if worker.running:
                break
            deaths += 1
    assert deaths == (1 if execution == "thread" else 0)  # from then on it is alone in a child
    poison = jobs.get(rows[10])
    assert story_of(poison) == Story("failed", ["lost"] * 4, ["WorkerDied"])
    assert (poison.losses, poison.failures, poison.cause) == (4, 0, "worker died")
    assert "lost 4 times, max_lost is 3" in failure_of(poison).message
    assert effects(live_database, "poison") == 4
    others = Job.objects.using(live_database).exclude(pk=poison.pk)
    assert set(others.values_list("status", "failures")) == {("completed", 0)}
    assert max(others.values_list("losses", flat=True)) <= (1 if execution == "thread" else 0)


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_children_that_exit_with_any_code_cost_their_own_job_only(live_database: str) -> None:
    with scheduler(live_database, "--processes=2", jobs=FAST):
        bad = [faulty.pexit_own_process.using(max_lost=0).enqueue(code) for code in (0, 3)]
        good = jobs.enqueue_many([tasks.padd.bind(n, 1) for n in range(40)])
        wait_until(lambda: all(jobs.get(row).is_finished for row in (*bad, *good)), timeout=60)
    assert [story_of(row) for row in bad] == [Story("failed", ["lost"], ["WorkerDied"])] * 2
    assert {(jobs.get(row).status, jobs.get(row).attempts) for row in good} == {("completed", 1)}


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_child_that_exits_beside_three_that_run_costs_these_nothing(live_database: str, tmp_path: Path) -> None:
    until = tmp_path / "leave"
    with scheduler(live_database, "--processes=4", jobs=FAST):
        running = [tasks.hang_in_process.enqueue("beside", str(until)) for _ in range(3)]
        wait_until(lambda: effects(live_database, "beside") == 3)
        bad = faulty.pexit_own_process.using(max_lost=0).enqueue(3)
        wait_until(lambda: jobs.get(bad).is_finished)
        good = jobs.enqueue_many([tasks.padd.bind(n, 1) for n in range(100)])
        wait_until(lambda: all(jobs.get(row).is_finished for row in good), timeout=60)
        until.touch()
        wait_until(lambda: all(jobs.get(row).is_finished for row in running))
    assert story_of(bad) == Story("failed", ["lost"], ["WorkerDied"])
    assert {(jobs.get(row).status, jobs.get(row).attempts) for row in (*running, *good)} == {("completed", 1)}


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_an_at_most_once_job_killed_in_its_body_fails_as_unknown_and_is_never_run_again(
    live_database: str, tmp_path: Path
) -> None:
    with scheduler(live_database, jobs=FAST) as victim:
        row = faulty.once.enqueue("once", "stay", str(tmp_path))
        wait_until(lambda: effects(live_database, "once") == 1)
        kill(victim)
    with scheduler(live_database, jobs=FAST):
        wait_until(lambda: jobs.get(row).is_finished)
        probe = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(probe).status == Status.COMPLETED)
    assert story_of(row) == Story("failed", ["lost"], ["OutcomeUnknown"])
    assert (jobs.get(row).cause, effects(live_database, "once")) == ("outcome unknown", 1)


def test_an_at_most_once_job_killed_while_only_claimed_runs_later(live_database: str, tmp_path: Path) -> None:
    """Its process is killed after the claim's commit, before the start is written."""
    hook = {"TEST_KILL_BEFORE": "jobs.engine.dispatcher.begin"}
    row = faulty.once.enqueue("once")
    with scheduler(live_database, jobs=FAST, environment=hook, wait=False) as victim:
        assert victim.wait(40) == -signal.SIGKILL, victim.output
    assert (jobs.get(row).status, story_of(row).outcomes, effects(live_database, "once")) == ("running", ["running"], 0)
    with scheduler(live_database, jobs=FAST):
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
    assert (story_of(row).outcomes, jobs.get(row).losses) == (["lost", "completed"], 0)
    assert effects(live_database, "once") == 1


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_an_at_most_once_job_interrupted_or_timed_out_fails_as_unknown_whatever_its_retries(
    live_database: str, tmp_path: Path
) -> None:
    with scheduler(live_database, "--grace=0.2", jobs=FAST) as worker:
        interrupted = faulty.once.enqueue("interrupted", "stay", str(tmp_path))
        timed_out = faulty.once.using(timeout=0.3).enqueue("timed out", "stay", str(tmp_path))
        raised = faulty.once.enqueue("raised", "raise")
        wait_until(lambda: jobs.get(timed_out).is_finished and jobs.get(raised).is_finished)
        wait_until(lambda: effects(live_database, "interrupted") == 1)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    with scheduler(live_database, jobs=FAST):
        probe = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(probe).status == Status.COMPLETED)
    for row, label in ((interrupted, "interrupted"), (timed_out, "timed out")):
        assert (jobs.get(row).status, jobs.get(row).cause) == ("failed", "outcome unknown")
        assert effects(live_database, label) == 1
    # What it raised is known, so it may be retried.
    assert story_of(raised) == Story("completed", ["failed", "completed"], ["ValueError"], "done")
