"""A worker stopped past its lease: its jobs are another's, and however the first copy ends, it writes nothing."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs import Status
from jobs.models import Attempt, Job
from tests.support import faulty, tasks
from tests.support.models import Effect, effects
from tests.support.processes import ChildProcess
from tests.support.schedulers import FAST, scheduler
from tests.support.story import story_of
from tests.support.waiting import wait_until

on_postgresql = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


def freeze(worker: ChildProcess) -> list[Any]:
    """With its child processes, which have groups of their own; returns them."""
    below = worker.descendants()
    worker.send(signal.SIGSTOP)
    for one in below:
        one.suspend()
    return below


def thaw(worker: ChildProcess, below: list[Any]) -> None:
    for one in below:
        if one.is_running():
            one.resume()
    worker.send(signal.SIGCONT)


@on_postgresql
@pytest.mark.parametrize(
    ("execution", "how"),
    [
        ("thread", "succeed"),
        ("thread", "time out"),
        ("process", "fail"),
        pytest.param("thread", "fail", marks=pytest.mark.slow),
        pytest.param("process", "succeed", marks=pytest.mark.slow),
        pytest.param("process", "time out", marks=pytest.mark.slow),
    ],
)
def test_the_end_of_the_first_copy_changes_nothing(
    live_database: str, tmp_path: Path, how: str, execution: str
) -> None:
    task = faulty.outlive.using(execution=execution, timeout=3 if how == "time out" else None)
    with scheduler(live_database, "--name=frozen", jobs=FAST) as frozen:
        row = task.enqueue(how if how != "time out" else "succeed", str(tmp_path))
        wait_until(lambda: effects(live_database, "outlive") == 1)
        below = freeze(frozen)
        with scheduler(live_database, "--name=other", jobs=FAST):
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED, what="run by the other")
        before = rows_of(row)
        if how != "time out":
            Path(tmp_path, "open").touch()  # it ends at the very moment it wakes up
        thaw(frozen, below)
        frozen.wait_for(f"job {row.pk}, attempt .*: the lease is lost")
        Path(tmp_path, "open").touch()
        probe = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(probe).status == Status.COMPLETED, what="it works on")
        frozen.send(signal.SIGTERM)
        assert frozen.wait() == 0, frozen.output
    if how != "fail":  # whose own traceback is logged, discarded or not
        assert "Traceback" not in frozen.output
    assert rows_of(row) == before
    assert story_of(row).outcomes == ["lost", "completed"]
    assert story_of(row).result == "attempt 2"


def rows_of(row: Job) -> list[Any]:
    alias = row._state.db
    job = Job.objects.using(alias).filter(pk=row.pk).values()
    return [*job, *Attempt.objects.using(alias).filter(job_id=row.pk).order_by("number").values()]


def test_it_wakes_up_while_the_second_copy_runs(live_database: str, tmp_path: Path) -> None:
    """Both bodies are at work; only the second one's outcome counts."""
    with scheduler(live_database, "--name=frozen", jobs=FAST) as frozen:
        row = faulty.stay_twice.enqueue(str(tmp_path))
        wait_until(lambda: effects(live_database, "stay") == 1)
        below = freeze(frozen)
        with scheduler(live_database, "--name=other", jobs=FAST):
            wait_until(lambda: effects(live_database, "stay") == 2, what="the other has begun it")
            thaw(frozen, below)
            frozen.wait_for(f"job {row.pk}, attempt .*: the lease is lost")
            Path(tmp_path, "open-1").touch()
            probe = tasks.add.enqueue(1)
            wait_until(lambda: jobs.get(probe).status == Status.COMPLETED)
            assert jobs.get(row).status == Status.RUNNING
            Path(tmp_path, "open-2").touch()
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
    assert (story_of(row).outcomes, story_of(row).result) == (["lost", "completed"], 2)


BEFORE_START = {
    tasks.leave_mark: "jobs.engine.executors.thread.opened",
    tasks.aleave_mark: "jobs.engine.executors.async_loop.opened",
    tasks.pleave_mark: "jobs.engine.executors.process.ProcessRun",
}


@on_postgresql
@pytest.mark.parametrize("task", BEFORE_START, ids=lambda task: task.name.rpartition(".")[2])
def test_a_body_does_not_begin_when_its_worker_was_frozen_between_claim_and_start(
    live_database: str, tmp_path: Path, task: Any
) -> None:
    harmed = tmp_path / "harmed"
    environment = {"TEST_FREEZE_BEFORE": BEFORE_START[task], "TEST_HARMED": str(harmed)}
    with scheduler(live_database, "--name=frozen", jobs=FAST, environment=environment) as frozen:
        row = task.enqueue("began")
        wait_until(harmed.exists, what="it is frozen")
        with scheduler(live_database, "--name=other", jobs=FAST):
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
        frozen.send(signal.SIGCONT)
        probe = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(probe).status == Status.COMPLETED, what="it works on")
        frozen.send(signal.SIGTERM)
        assert frozen.wait() == 0, frozen.output
    (effect,) = Effect.objects.using(live_database).filter(label="began")
    assert effect.attempt == 2
    assert story_of(row).outcomes == ["lost", "completed"]


@on_postgresql
def test_an_at_most_once_body_does_not_begin_either_and_fails_as_unknown(live_database: str, tmp_path: Path) -> None:
    """Its start was written, and nobody can know that the body never began."""
    harmed = tmp_path / "harmed"
    environment = {"TEST_FREEZE_BEFORE": "jobs.engine.executors.thread.opened", "TEST_HARMED": str(harmed)}
    with scheduler(live_database, "--name=frozen", jobs=FAST, environment=environment) as frozen:
        row = faulty.once.enqueue("once")
        wait_until(harmed.exists, what="it is frozen")
        with scheduler(live_database, "--name=other", jobs=FAST):
            wait_until(lambda: jobs.get(row).is_finished)
        frozen.send(signal.SIGCONT)
        probe = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(probe).status == Status.COMPLETED, what="it works on")
    assert effects(live_database, "once") == 0
    assert (jobs.get(row).status, jobs.get(row).cause) == ("failed", "outcome unknown")
