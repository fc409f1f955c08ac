"""Every move is reported once, after its commit, to listeners and to Django signals."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

import jobs
from jobs import Move, RetryPolicy, Status
from jobs.domain.move import listeners
from jobs.models import Job
from jobs.signals import job_enqueued, job_finished, job_retrying, job_started
from jobs.testing import run_jobs
from tests.support import steered, tasks
from tests.support.engine import running
from tests.support.steered import Model, wait_for_begin
from tests.support.story import story_of

SIGNALS = {"enqueued": job_enqueued, "started": job_started, "finished": job_finished, "retrying": job_retrying}
Told = tuple[Any, ...]


class Listener:
    """Remembers moves, from any thread."""

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self._lock = threading.Lock()

    def __call__(self, move: Move) -> None:
        with self._lock:
            self.moves.append(move)

    def of(self, row: Job) -> list[Told]:
        return [(str(one.old), str(one.new), one.attempt) for one in self.moves if one.job_id == row.pk]


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Hears of everything that this process does."""
    heard = Listener()
    listeners.add(heard)
    yield heard
    listeners.remove(heard)


@contextmanager
def connected(receive: Callable[..., None]) -> Iterator[None]:
    """`receive(name, **what)` for each signal."""
    receivers = []
    for name, signal in SIGNALS.items():

        def receiver(sender: Any, name: str = name, **what: Any) -> None:
            receive(name, sender=sender, **what)

        receivers.append((signal, receiver))
        signal.connect(receiver)
    try:
        yield
    finally:
        for signal, receiver in receivers:
            signal.disconnect(receiver)


ALL_AT_ONCE = RetryPolicy(max_retries=2, base_delay=0)

MOVES: dict[str, list[Told]] = {
    "complete": [
        ("None", "pending", None),
        ("pending", "running", 1),
        ("running", "completed", 1),
    ],
    "fail_twice": [
        ("None", "pending", None),
        ("pending", "running", 1),
        ("running", "retry_wait", 1),
        ("retry_wait", "pending", 1),
        ("pending", "running", 2),
        ("running", "retry_wait", 2),
        ("retry_wait", "pending", 2),
        ("pending", "running", 3),
        ("running", "completed", 3),
    ],
    "snooze_once": [
        ("None", "pending", None),
        ("pending", "running", 1),
        ("running", "scheduled", 1),
        ("scheduled", "pending", 1),
        ("pending", "running", 2),
        ("running", "completed", 2),
    ],
    "cancel_itself": [("None", "pending", None), ("pending", "running", 1), ("running", "cancelled", 1)],
    "give_up": [("None", "pending", None), ("pending", "running", 1), ("running", "failed", 1)],
}


def test_every_move_of_a_job_is_reported_once_and_in_order(
    live_database: str, model: Model, listener: Listener
) -> None:
    own = Listener()
    with running(name="worker-7", **model.slots) as scheduler:
        scheduler.add_listener(own)
        rows = {how: model.steer.using(retry=ALL_AT_ONCE).enqueue(how) for how in MOVES}
        assert scheduler.join(30)
    # Two agents make moves: what one reports may reach a listener before what the other reported earlier.
    assert {how: sorted(listener.of(row)) for how, row in rows.items()} == {
        how: sorted(moves) for how, moves in MOVES.items()
    }
    engine_moves = [move for move in listener.moves if move.old is not None]
    assert {move.actor for move in engine_moves} == {"worker-7"}
    assert {move.task for move in listener.moves} == {model.steer.name}
    finished = [move for move in own.moves if move.new in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)]
    assert {move.job_id for move in finished} == {row.pk for row in rows.values()}
    assert all(move.at == jobs.get(move.job_id).status_changed_at for move in finished)


def test_signals_tell_the_same(live_database: str, listener: Listener) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    with connected(lambda name, **what: heard.append((name, what))):
        row = steered.steer.using(retry=ALL_AT_ONCE).enqueue("fail_twice")
        with running() as scheduler:
            assert scheduler.join(30)
    names = [name for name, _ in heard]
    assert sorted(names) == sorted(["enqueued"] + ["started"] * 3 + ["retrying"] * 2 + ["finished"])
    for _, what in heard:
        what.pop("signal", None)
        assert what.pop("sender") is Job
    told = [Move(**what) for _, what in heard]
    expected = [move for move in listener.moves if move.old is not Status.RETRY_WAIT]
    assert sorted(told, key=str) == sorted(expected, key=str)
    assert {move.job_id for move in told} == {row.pk}


def test_cancel_and_requeue_are_reported_with_who_did_it(live_database: str, listener: Listener) -> None:
    row = tasks.add.using(delay=3600).enqueue(1)
    assert jobs.cancel(row, actor="ann")
    assert jobs.requeue(row, actor="bob")
    assert [(str(move.old), move.new, move.actor) for move in listener.moves] == [
        ("None", "scheduled", ""),
        ("scheduled", "cancelled", "ann"),
        ("cancelled", "pending", "bob"),
    ]


def test_many_submitted_at_once_are_each_reported(live_database: str, listener: Listener) -> None:
    rows = jobs.enqueue_many([tasks.add.bind(number) for number in range(50)], actor="import")
    assert [(move.job_id, move.new, move.actor) for move in listener.moves] == [
        (row.pk, "pending", "import") for row in rows
    ]


def test_a_submit_that_finds_the_holder_of_its_key_reports_nothing(live_database: str, listener: Listener) -> None:
    first = tasks.add.using(unique_key="k").enqueue(1)
    again = tasks.add.using(unique_key="k").enqueue(1)
    assert (again.created, [move.job_id for move in listener.moves]) == (False, [first.pk])


def test_a_rollback_reports_nothing_and_wakes_nobody(live_database: str, listener: Listener) -> None:
    with running(poll=600.0) as scheduler:
        kept = tasks.add.using(delay=3600).enqueue(0)
        with contextlib.suppress(ZeroDivisionError), transaction.atomic(using=live_database):
            row = tasks.add.enqueue(1)
            jobs.cancel(kept)
            raise ZeroDivisionError
        with transaction.atomic(using=live_database):
            with contextlib.suppress(ZeroDivisionError), transaction.atomic(using=live_database):
                tasks.add.enqueue(2)
                raise ZeroDivisionError
        assert scheduler.join(10, due_only=True)
    assert [(move.job_id, move.new) for move in listener.moves] == [(kept.pk, "scheduled")]
    assert jobs.get(kept).status == "scheduled"
    with pytest.raises(jobs.JobNotFound):
        jobs.get(row)


def test_a_move_is_reported_after_its_commit(live_database: str) -> None:
    """What anybody reads is never older than what a listener was told."""
    early: list[Move] = []
    order = ["pending", "running", "completed"]

    def compare(move: Move) -> None:
        # Through a connection that sees nothing of the one that made the move.
        status = reader.submit(lambda: Job.objects.using(live_database).get(pk=move.job_id).status).result(10)
        if order.index(status) < order.index(move.new):
            early.append(move)

    with ThreadPoolExecutor(1) as reader, running() as scheduler:
        scheduler.add_listener(compare)
        with transaction.atomic(using=live_database):
            rows = [tasks.add.enqueue(number) for number in range(20)]
        assert scheduler.join(15)
        reader.submit(connections.close_all).result(10)
    assert early == []
    assert {story_of(row).status for row in rows} == {"completed"}


def test_a_listener_that_raises_changes_nothing(
    live_database: str, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("this listener is broken")

    listeners.add(broken)
    try:
        with connected(broken), running(processes=1) as scheduler:
            rows = [task.enqueue(1) for task in (tasks.add, tasks.aadd, tasks.padd)]
            row = steered.steer.using(retry=ALL_AT_ONCE).enqueue("fail_twice")
            assert scheduler.join(30)
            assert scheduler.dead_loops == []
    finally:
        listeners.remove(broken)
    assert [story_of(one).status for one in (*rows, row)] == ["completed"] * 4
    assert sorted(listener.of(row)) == sorted(MOVES["fail_twice"])
    assert "this listener is broken" in caplog.text


def test_a_listener_may_submit_and_cancel(live_database: str) -> None:
    submitted: list[int] = []

    def follow(move: Move) -> None:
        if move.new == "completed" and not submitted:
            submitted.append(tasks.add.enqueue(5).pk)

    with running() as scheduler:
        scheduler.add_listener(follow)
        tasks.add.enqueue(1)
        assert scheduler.join(15)
    assert jobs.get(submitted[0]).result == 5


def test_a_cancelled_running_job_is_reported_when_it_has_ended(
    live_database: str, model: Model, listener: Listener, tmp_path: Path
) -> None:
    with running(**model.slots) as scheduler:
        row = model.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        jobs.cancel(row, actor="ann")
        assert scheduler.join(30)
    assert sorted(listener.of(row)) == sorted(MOVES["cancel_itself"])


def test_run_jobs_reports_like_a_scheduler(live_database: str, listener: Listener) -> None:
    row = steered.steer.using(retry=ALL_AT_ONCE).enqueue("fail_twice")
    run_jobs()
    assert listener.of(row) == MOVES["fail_twice"]


def test_a_listener_of_a_stopped_scheduler_hears_nothing_more(live_database: str) -> None:
    own = Listener()
    with running() as scheduler:
        scheduler.add_listener(own)
    tasks.add.enqueue(1)
    assert own.moves == []
