"""The process executor, with real children and real signals."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.stop import StopReason
from jobs.engine.executors.process import ProcessExecutor
from tests.support.bodies import ExitWhenRead
from tests.support.ear import Ear, claim
from tests.support.processes import run_process
from tests.support.waiting import wait_until

RUNNER = "tests.support.bodies.run_here"
Make = Callable[..., ProcessExecutor]


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def make(ear: Ear) -> Iterator[Make]:
    """Makes started executors, and stops them."""
    made: list[ProcessExecutor] = []

    def start(slots: int = 1, *, kill_after: float = 30, runner: str = RUNNER) -> ProcessExecutor:
        executor = ProcessExecutor(slots, ear, kill_after=kill_after, runner=runner)
        made.append(executor)
        executor.start()
        return executor

    yield start
    for executor in made:
        executor.stop(time.monotonic())


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def trace(folder: Path, name: str) -> int:
    """The number that a body left in a file, once it is there; 0 in an empty one."""
    wait_until((folder / name).exists, what=name)
    return int((folder / name).read_text() or 0)


def result(outcome: Outcome) -> object:
    assert outcome.ending is Ending.COMPLETED, outcome
    return json.loads(outcome.result or "null")


def run(executor: ProcessExecutor, ear: Ear, task: str, *args: object) -> Outcome:
    job = claim(task, *args)
    executor.submit(job)
    return ear.outcome(job)


def begin(executor: ProcessExecutor, ear: Ear, task: str, *args: object) -> Claim:
    job = claim(task, *args)
    executor.submit(job)
    ear.wait_for("started", job)
    return job


def test_a_result_comes_back_and_the_start_is_heard_before_the_end(make: Make, ear: Ear) -> None:
    executor = make()
    job = claim("pid")
    executor.submit(job)
    assert result(ear.outcome(job)) != os.getpid()
    assert ear.of(job) == ["started", "finished"]


def test_an_exception_is_a_failure_with_its_class_and_the_child_stays(make: Make, ear: Ear) -> None:
    executor = make()
    before = result(run(executor, ear, "pid"))
    outcome = run(executor, ear, "fail")
    assert outcome.ending is Ending.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.exception_class, outcome.failure.message) == ("builtins.LookupError", "nothing there")
    assert result(run(executor, ear, "pid")) == before


@pytest.mark.parametrize("code", [0, 3])
def test_a_body_that_exits_its_process_is_lost_and_the_child_replaced(make: Make, ear: Ear, code: int) -> None:
    executor = make()
    outcome = run(executor, ear, "exit_at_once", code)
    assert outcome.ending is Ending.LOST
    assert outcome.reason.endswith(f"died: exit code {code}")
    result(run(executor, ear, "pid"))


@pytest.mark.parametrize("task", ["kill_itself", "kill_its_group"])
def test_a_body_that_kills_its_process_leaves_its_neighbours_alone(
    make: Make, ear: Ear, tmp_path: Path, task: str
) -> None:
    executor = make(slots=4)
    neighbours = [begin(executor, ear, "wait_for", str(tmp_path), "go") for _ in range(3)]
    outcome = run(executor, ear, task)
    assert outcome.ending is Ending.LOST
    assert "exit code -9 (SIGKILL)" in outcome.reason
    (tmp_path / "go").touch()
    assert [result(ear.outcome(neighbour)) for neighbour in neighbours] == ["seen"] * 3


def test_a_timeout_ends_the_child_and_its_grandchild(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    job = begin(executor, ear, "sleep_with_grandchild", str(tmp_path))
    grandchild, child = trace(tmp_path, "grandchild"), trace(tmp_path, "child")
    assert executor.stop_run(job.attempt_id, StopReason.TIMEOUT)
    outcome = ear.outcome(job)
    assert outcome.ending is Ending.TIMED_OUT
    assert outcome.failure is not None
    assert outcome.failure.exception_class == "jobs.TimedOut"
    wait_until(lambda: is_gone(child) and is_gone(grandchild), timeout=5)
    result(run(executor, ear, "pid"))


def test_helpers_that_a_job_starts_with_multiprocessing_end_with_it(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    job = begin(executor, ear, "sleep_with_pool", str(tmp_path))
    grandchild = trace(tmp_path, "grandchild")
    assert executor.stop_run(job.attempt_id, StopReason.TIMEOUT)
    ear.outcome(job)
    wait_until(lambda: is_gone(grandchild), timeout=5)


def test_the_grandchild_of_a_child_that_died_is_gone_too(make: Make, ear: Ear, tmp_path: Path) -> None:
    assert run(make(), ear, "die_beside_grandchild", str(tmp_path)).ending is Ending.LOST
    wait_until(lambda: is_gone(trace(tmp_path, "grandchild")), timeout=5)


def test_a_cancelled_body_runs_its_finally_blocks(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    job = begin(executor, ear, "sleep_with_finally", str(tmp_path))
    trace(tmp_path, "begun")
    assert executor.stop_run(job.attempt_id, StopReason.CANCEL)
    assert ear.outcome(job).ending is Ending.CANCELLED
    assert (tmp_path / "cleaned-up").exists()
    assert not executor.stop_run(job.attempt_id, StopReason.CANCEL)  # it has ended


@pytest.mark.parametrize("task", ["ignore_everything", "hold_the_interpreter"])
def test_a_body_that_does_not_stop_is_killed(make: Make, ear: Ear, tmp_path: Path, task: str) -> None:
    executor = make(kill_after=0.3)
    job = begin(executor, ear, task, str(tmp_path))
    wait_until(lambda: list(tmp_path.glob("[bc]*")))
    assert executor.stop_run(job.attempt_id, StopReason.INTERRUPT)
    assert ear.outcome(job, timeout=5).ending is Ending.INTERRUPTED
    result(run(executor, ear, "pid"))


def test_a_lost_lease_kills_at_once(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make(kill_after=600)
    job = begin(executor, ear, "ignore_everything", str(tmp_path))
    child = trace(tmp_path, "begun")
    executor.stop_run(job.attempt_id, StopReason.CANCEL)
    assert executor.stop_run(job.attempt_id, StopReason.LEASE_LOST)
    assert ear.outcome(job, timeout=5).ending is Ending.INTERRUPTED
    wait_until(lambda: is_gone(child), timeout=5)


@pytest.mark.parametrize(
    ("reason", "ending"), [(StopReason.CANCEL, Ending.COMPLETED), (StopReason.TIMEOUT, Ending.TIMED_OUT)]
)
def test_a_success_beats_a_cancel_but_not_a_timeout(
    make: Make, ear: Ear, tmp_path: Path, reason: StopReason, ending: Ending
) -> None:
    executor = make()
    job = begin(executor, ear, "succeed_when_asked_to_stop", str(tmp_path))
    trace(tmp_path, "begun")
    executor.stop_run(job.attempt_id, reason)
    assert ear.outcome(job).ending is ending


def test_a_request_that_comes_just_after_the_end_leaves_the_child_alone(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    job = begin(executor, ear, "succeed_unsignalled", str(tmp_path))
    trace(tmp_path, "begun")
    executor.stop_run(job.attempt_id, StopReason.CANCEL)
    child = result(ear.outcome(job))
    assert isinstance(child, int)
    os.kill(child, signal.SIGTERM)
    assert result(run(executor, ear, "pid")) == child


@pytest.mark.parametrize(
    ("reason", "ending"), [(StopReason.CANCEL, Ending.CANCELLED), (StopReason.INTERRUPT, Ending.UNSTARTED)]
)
def test_a_run_stopped_before_its_child_is_ready_never_begins(
    make: Make, ear: Ear, tmp_path: Path, reason: StopReason, ending: Ending
) -> None:
    executor = make()
    job = claim("touch", str(tmp_path))
    executor.submit(job)
    assert executor.stop_run(job.attempt_id, reason)
    assert ear.outcome(job).ending is ending
    result(run(executor, ear, "pid"))
    assert ear.of(job) == ["finished"]
    assert not list(tmp_path.iterdir())


def test_a_stop_at_any_moment_around_the_start_gives_one_outcome(make: Make, ear: Ear) -> None:
    executor = make(slots=2)
    result(run(executor, ear, "pid"))
    rng, jobs = random.Random(7), []
    for _ in range(40):
        job = claim("nap", 0.005)
        executor.submit(job)
        threading.Event().wait(rng.uniform(0, 0.008))
        executor.stop_run(job.attempt_id, StopReason.CANCEL)
        jobs.append(job)
        ear.outcome(job)
    assert {ear.outcomes[job.attempt_id].ending for job in jobs} <= {Ending.CANCELLED, Ending.COMPLETED}
    assert all(ear.of(job).count("finished") == 1 for job in jobs)
    result(run(executor, ear, "pid"))


def test_the_engine_can_refuse_a_start(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    ear.refusal = Outcome(Ending.CANCELLED, reason="expired")
    assert run(executor, ear, "touch", str(tmp_path)) == ear.refusal
    assert not list(tmp_path.iterdir())


def test_a_claim_that_waits_for_a_slot_can_be_withdrawn(make: Make, ear: Ear, tmp_path: Path) -> None:
    executor = make()
    first = begin(executor, ear, "wait_for", str(tmp_path), "go")
    waiting, third = claim("touch", str(tmp_path)), claim("pid")
    executor.submit(waiting)
    executor.submit(third)
    assert executor.withdraw(waiting.attempt_id)
    assert not executor.withdraw(waiting.attempt_id)
    assert not executor.withdraw(first.attempt_id)
    (tmp_path / "go").touch()
    result(ear.outcome(third))
    assert ear.of(waiting) == []


def test_an_outcome_that_is_not_plain_data_is_a_failure(make: Make, ear: Ear) -> None:
    executor = make(runner="tests.support.bodies.run_badly")
    outcome = run(executor, ear, "pid")
    assert outcome.ending is Ending.FAILED
    assert outcome.failure is not None
    assert "object is not JSON serializable" in outcome.failure.message


def test_a_runner_that_cannot_be_imported_hands_the_claim_back(make: Make, ear: Ear) -> None:
    executor = make(runner="tests.support.bodies.missing")
    job = claim("pid")
    executor.submit(job)
    assert ear.outcome(job).ending is Ending.UNSTARTED
    assert ear.of(job) == ["finished"]


def test_signals_sent_to_every_process_do_not_disturb_a_running_body(make: Make, ear: Ear, tmp_path: Path) -> None:
    """As systemd does at a stop: to the fork server, too."""
    executor = make(slots=2)
    result(run(executor, ear, "pid"))
    job = begin(executor, ear, "wait_for", str(tmp_path), "go")
    trace(tmp_path, f"waiting-{job.job_id}")
    below = psutil.Process().children(recursive=True)
    ours = [process for process in below if re.search(r"multiprocessing\.(forkserver|spawn)", str(process.cmdline()))]
    assert ours
    for process in ours:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
    result(run(executor, ear, "pid"))  # in a child that is new, or was not idle
    (tmp_path / "go").touch()
    assert result(ear.outcome(job)) == "seen"


def test_a_copy_that_a_body_forked_off_does_not_answer(make: Make, ear: Ear) -> None:
    executor = make()
    copy = result(run(executor, ear, "fork_and_return"))
    assert isinstance(copy, int)
    assert copy > 0
    wait_until(lambda: is_gone(copy), timeout=5)


def test_a_job_ends_its_own_helper_with_sigterm(make: Make, ear: Ear) -> None:
    assert result(run(make(), ear, "end_helper")) == -signal.SIGTERM


def test_the_newest_progress_is_heard_before_the_end(make: Make, ear: Ear) -> None:
    executor = make()
    job = claim("report", 1000)
    executor.submit(job)
    ear.outcome(job)
    assert (ear.progress[job.attempt_id].done, ear.progress[job.attempt_id].total) == (1000, 1000)
    assert ear.of(job)[0] == "started"
    assert ear.of(job)[-2:] == ["progressed", "finished"]
    assert len(ear.of(job)) < 20  # rate limited


def test_an_alarm_left_behind_does_not_hit_the_next_job(make: Make, ear: Ear) -> None:
    executor = make()
    run(executor, ear, "leave_alarm")
    result(run(executor, ear, "nap", 0.2))


def test_an_idle_child_that_is_killed_is_replaced(make: Make, ear: Ear) -> None:
    executor = make()
    for number in (signal.SIGKILL, signal.SIGTERM):
        child = result(run(executor, ear, "pid"))
        assert isinstance(child, int)
        os.kill(child, number)
        assert result(run(executor, ear, "pid")) != child


def test_a_claim_that_its_child_took_along_is_given_to_the_next(make: Make, ear: Ear, tmp_path: Path) -> None:
    """pebble tells of no child that exits with 0, and of no claim that such a child has read."""
    executor = make()
    job = claim("take", ExitWhenRead(str(tmp_path)))
    executor.submit(job)
    assert result(ear.outcome(job)) == "taken"
    assert (tmp_path / "was-here").exists()


def test_children_killed_at_random_cost_at_most_their_own_run(make: Make, ear: Ear) -> None:
    executor = make(slots=2)
    assert isinstance(result(run(executor, ear, "pid")), int)
    jobs = [claim("pid") for _ in range(300)]
    for job in jobs:
        executor.submit(job)
    rng, kills = random.Random(3), 0
    while kills < 6 and len(ear.outcomes) < 290:
        known = [int(outcome.result) for outcome in list(ear.outcomes.values())[-4:] if outcome.result]
        if known:
            try:
                os.kill(rng.choice(known), signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                pass
        threading.Event().wait(0.02)
    endings = [ear.outcome(job).ending for job in jobs]
    assert set(endings) <= {Ending.COMPLETED, Ending.LOST}
    assert endings.count(Ending.LOST) <= kills
    assert set(ear.counts("finished").values()) == {1}


def test_two_children_run_two_hundred_tiny_jobs(make: Make, ear: Ear) -> None:
    executor = make(slots=2)
    jobs = [claim("pid") for _ in range(200)]
    for job in jobs:
        executor.submit(job)
    assert len({result(ear.outcome(job)) for job in jobs}) == 2


def test_children_use_the_databases_of_their_parent(make: Make, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {**connections.settings["default"], "NAME": "of-the-parent"}
    monkeypatch.setitem(connections.settings, "default", changed)
    assert result(run(make(), ear, "database_name")) == "of-the-parent"


def test_stop_ends_running_bodies_and_leaves_no_process_and_no_descriptor(make: Make, ear: Ear, tmp_path: Path) -> None:
    result(run(make(), ear, "pid"))  # the fork server, which stays
    known, descriptors = set(psutil.Process().children(recursive=True)), psutil.Process().num_fds()
    executor = make(slots=3)
    stubborn = begin(executor, ear, "ignore_everything", str(tmp_path))
    willing = begin(executor, ear, "sleep_with_finally", str(tmp_path))
    result(run(executor, ear, "pid"))  # a third child, idle
    wait_until(lambda: (tmp_path / "begun").exists())
    executor.stop(time.monotonic() + 1)
    assert ear.outcomes[stubborn.attempt_id].ending is Ending.INTERRUPTED
    assert ear.outcomes[willing.attempt_id].ending is Ending.INTERRUPTED
    assert (tmp_path / "cleaned-up").exists()
    wait_until(lambda: set(psutil.Process().children(recursive=True)) <= known, timeout=5)
    wait_until(lambda: psutil.Process().num_fds() <= descriptors + 1, timeout=5)  # + 1: shared memory
    executor.stop(time.monotonic())
    late = claim("pid")
    executor.submit(late)
    assert ear.outcome(late).ending is Ending.UNSTARTED


def test_stop_is_safe_unstarted(ear: Ear) -> None:
    executor = ProcessExecutor(2, ear)
    executor.stop(time.monotonic())
    executor.stop(time.monotonic())


@pytest.mark.parametrize("task", ["sleep_with_grandchild", "hold_the_interpreter"])
def test_children_do_not_outlive_a_killed_parent(tmp_path: Path, task: str) -> None:
    command = [sys.executable, "-m", "tests.support.executor_host", task, str(tmp_path)]
    with run_process(command, environment={"DJANGO_SETTINGS_MODULE": "tests.settings"}) as host:
        child = trace(tmp_path, "child")
        below = host.descendants()
        assert child in {process.pid for process in below}
        host.send(signal.SIGKILL)
        wait_until(lambda: all(is_gone(process.pid) for process in below), timeout=10)
