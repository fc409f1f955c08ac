"""Each store verb is cut off before and after each of its statements and commits; a second worker repairs the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from jobs.domain.closing import Closing
from jobs.domain.context import Progress
from jobs.domain.execution import Execution
from jobs.domain.outcome import Failure, LogLine
from jobs.domain.status import TERMINAL, AttemptOutcome, Status
from jobs.models import Attempt, Job, Occurrence, Payload, Result, Schedule, Worker
from jobs.models import Failure as FailureRow
from jobs.models.attempt import AttemptLog
from jobs.store.cancel import cancel
from jobs.store.claim import Owner, claim
from jobs.store.database import Database
from jobs.store.extend import begin, extend, note_progress, stop_lingering
from jobs.store.pick import Lane
from jobs.store.promote import expire, promote
from jobs.store.prune import prune
from jobs.store.reclaim import overdue, reclaim
from jobs.store.record import record
from jobs.store.release import release
from jobs.store.requeue import requeue
from jobs.store.submit import submit
from jobs.store.unblock import unblock
from jobs.store.verify import verify
from tests.support.store import Bench
from tests.support.striking import Died, Points, striking

Act = Callable[[Database], Any]
TABLES = (
    (Job, "id"), (Payload, "job_id"), (Attempt, "job_id"), (Result, "job_id"),
    (FailureRow, "job_id"), (AttemptLog, "attempt__job_id"),
)  # fmt: skip
EXPLODED = Failure("builtins.ValueError", "boom", "Traceback", ("builtins.KeyError",), "shop.tasks", "pay")


@dataclass(slots=True)
class Scene:
    """Jobs in a queue of their own, and what one verb is about to do with them."""

    act: Act
    job_ids: list[int] = field(default_factory=list)


def lanes(queue: str) -> list[Lane]:
    return [Lane(queue, execution, 100) for execution in Execution]


def claimed(bench: Bench, queue: str, count: int = 2, **options: Any) -> list[Any]:
    for _ in range(count):
        bench.submit(queue=queue, **options)
    return bench.claim(queues=(queue,))


def closing(one: Any, status: Status, **changes: Any) -> Closing:
    outcome = AttemptOutcome.COMPLETED if status is Status.COMPLETED else AttemptOutcome.FAILED
    return Closing(one.attempt_id, one.job_id, one.task, one.number, outcome, status, **changes)


def submitting(bench: Bench, queue: str) -> Scene:
    keyed = bench.submit(queue=queue, unique_key=queue)
    more = [bench.submission(queue=queue, delay_seconds=delay) for delay in (0.0, 60.0)]
    more.append(bench.submission(queue=queue, unique_key=queue))
    return Scene(lambda db: submit(db, more), [keyed.job_id])


def promoting(bench: Bench, queue: str) -> Scene:
    rows = [bench.submit(queue=queue, delay_seconds=10.0) for _ in range(2)]
    bench.turn(20)
    return Scene(promote, [row.job_id for row in rows])


def expiring(bench: Bench, queue: str) -> Scene:
    row = bench.submit(queue=queue, unique_key=queue, expires_at=bench.now + timedelta(seconds=10))
    bench.turn(20)
    return Scene(expire, [row.job_id])


def claiming(bench: Bench, queue: str) -> Scene:
    rows = [bench.submit(queue=queue, unique_key=f"{queue}{n}", unique_until_started=n == 1) for n in range(3)]
    act = lambda db: claim(db, bench.owner, lanes(queue), limits=dict.fromkeys(Execution, (100, 0)), lease_seconds=60.0)  # noqa: E731
    return Scene(act, [row.job_id for row in rows])


def beginning(bench: Bench, queue: str) -> Scene:
    (one,) = claimed(bench, queue, 1, at_most_once=True)
    return Scene(lambda db: begin(db, bench.owner.id, one.attempt_id), [one.job_id])


def recording(bench: Bench, queue: str) -> Scene:
    done, failed, again, asked, held = claimed(bench, queue, 5, unique_key=None, max_retries=1)
    cancel(bench.db, [asked.job_id])
    log = (LogLine(0.1, "INFO", "shop", "hello"),)
    closings = [
        closing(done, Status.COMPLETED, result='{"a": 1}', log=log, started_at=bench.now),
        closing(failed, Status.FAILED, failures=1, failure=EXPLODED),
        closing(again, Status.RETRY_WAIT, failures=1, delay_seconds=5.0, failure=EXPLODED),
        closing(asked, Status.RETRY_WAIT, failures=1, delay_seconds=5.0, failure=EXPLODED),
    ]
    missing = closing(held, Status.COMPLETED)
    release(bench.db, bench.owner.id, [held.attempt_id], actor="")  # one of the group is lost already
    act = lambda db: record(db, bench.owner.id, [*closings, missing], actor="worker-1")  # noqa: E731
    return Scene(act, [one.job_id for one in (done, failed, again, asked, held)])


def extending(bench: Bench, queue: str) -> Scene:
    held = claimed(bench, queue)
    (lingers,) = claimed(bench, queue, 1)
    bench.close(lingers, Status.TIMED_OUT, failures=1, failure=EXPLODED, lingers=True)
    bench.turn(5)
    started = {one.attempt_id: bench.now for one in held}
    act = lambda db: extend(db, bench.owner.id, started, lease_seconds=60.0, lingering=[lingers.attempt_id])  # noqa: E731
    return Scene(act, [one.job_id for one in (*held, lingers)])


def telling_progress(bench: Bench, queue: str) -> Scene:
    (one,) = claimed(bench, queue, 1)
    return Scene(lambda db: note_progress(db, bench.owner.id, {one.attempt_id: Progress(1, 2, "x")}), [one.job_id])


def returning(bench: Bench, queue: str) -> Scene:
    (one,) = claimed(bench, queue, 1)
    bench.close(one, Status.TIMED_OUT, failures=1, failure=EXPLODED, lingers=True)
    return Scene(lambda db: stop_lingering(db, bench.owner.id, [one.attempt_id]), [one.job_id])


def releasing(bench: Bench, queue: str) -> Scene:
    held = claimed(bench, queue, 3)
    cancel(bench.db, [held[0].job_id])
    ids = [one.attempt_id for one in held]
    return Scene(lambda db: release(db, bench.owner.id, ids, actor="", task_unknown=True), [x.job_id for x in held])


def reclaiming(bench: Bench, queue: str) -> Scene:
    held = claimed(bench, queue, 2)
    held += claimed(bench, queue, 1, max_lost=0)
    (once,) = claimed(bench, queue, 1, at_most_once=True)
    begin(bench.db, bench.owner.id, once.attempt_id)
    cancel(bench.db, [held[0].job_id])
    bench.turn(100)
    ours = {one.attempt_id for one in (*held, once)}
    seen = {key: until for key, until in overdue(bench.db).items() if key in ours}
    return Scene(lambda db: reclaim(db, seen), [one.job_id for one in (*held, once)])


def cancelling(bench: Bench, queue: str) -> Scene:
    (runs,) = claimed(bench, queue, 1)
    waits = [bench.submit(queue=queue, unique_key=queue), bench.submit(queue=queue, delay_seconds=50.0)]
    ids = [runs.job_id, *(row.job_id for row in waits)]
    return Scene(lambda db: cancel(db, ids, reason="no use", actor="somebody"), ids)


def requeueing(bench: Bench, queue: str) -> Scene:
    ended = [
        *claimed(bench, queue, 1, unique_key=f"{queue}a"), *claimed(bench, queue, 1, unique_key=f"{queue}b"),
    ]  # fmt: skip
    for one in ended:
        bench.close(one, Status.FAILED, failures=1, failure=EXPLODED)
    holder = bench.submit(queue=queue, unique_key=f"{queue}b")
    ids = [one.job_id for one in ended]
    return Scene(lambda db: requeue(db, ids), [*ids, holder.job_id])


def pruning(bench: Bench, queue: str) -> Scene:
    done, failed = claimed(bench, queue, 2)
    log = (LogLine(0.1, "INFO", "shop", "hello"),)
    bench.close(done, Status.COMPLETED, result="1", log=log)
    bench.close(failed, Status.FAILED, failures=1, failure=EXPLODED)
    bench.turn(100)
    keep = {Status.FAILED: timedelta(seconds=50), Status.COMPLETED: timedelta(seconds=50)}
    return Scene(lambda db: [prune(db, keep) for _ in range(3)], [done.job_id, failed.job_id])


SCENES = (
    submitting, promoting, expiring, claiming, beginning, recording, extending, telling_progress, returning,
    releasing, reclaiming, cancelling, requeueing, pruning,
)  # fmt: skip


@pytest.mark.parametrize("error", [Died, pytest.param(OperationalError, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_verb_cut_off_at_any_point_leaves_all_of_it_or_nothing_and_the_rest_is_repaired(
    live_database: str, scene: Callable[[Bench, str], Scene], error: type[BaseException]
) -> None:
    bench = Bench(live_database)
    for _ in cut_at_each_point(bench, scene, error):
        pass
    recover(bench)


def cut_at_each_point(
    bench: Bench, scene: Callable[[Bench, str], Scene], error: type[BaseException]
) -> Iterator[tuple[str, Scene]]:
    """The scene in a queue of its own, first uncut, then cut off at each point that it passed."""
    uncut = Points()
    prepared = scene(bench, "uncut")
    prepared.act(striking(bench.db, uncut))
    assert len(uncut.passed) >= 2 and uncut.written
    yield "uncut", prepared
    for number in range(1, len(uncut.passed) + 1):
        points = Points(number, error)
        queue = f"queue{number}"
        prepared = scene(bench, queue)
        before = stored(bench, queue)
        with pytest.raises(error):
            prepared.act(striking(bench.db, points))
        where = points.passed[-1]
        assert [passed.split(":")[0] for passed in points.passed] == [
            passed.split(":")[0] for passed in uncut.passed[:number]
        ]
        assert not bench.db.connection.in_atomic_block, where
        if not points.written:
            assert stored(bench, queue) == before, where
        elif number == len(uncut.passed):
            assert stored(bench, queue) != before, where
        assert violations(bench, overdue_seconds=10_000) == [], where
        yield queue, prepared


def stored(bench: Bench, queue: str) -> list[list[Any]]:
    """Every row about the jobs of a queue, and about the schedule and the worker of its name."""
    named = (
        Schedule.objects.using(bench.alias).filter(name=queue),
        Occurrence.objects.using(bench.alias).filter(schedule__name=queue).order_by("pk"),
        Worker.objects.using(bench.alias).filter(name=queue),
    )
    ids = Job.objects.using(bench.alias).filter(queue=queue).values("id")
    return [
        list(model.objects.using(bench.alias).filter(**{f"{key}__in": ids}).order_by("pk").values_list())
        for model, key in TABLES
    ] + [list(rows.values_list()) for rows in named]


def violations(bench: Bench, overdue_seconds: float) -> list[str]:
    return [f"{one}: {one.promise}" for one in verify(bench.db, overdue_seconds=overdue_seconds)]


def recover(bench: Bench) -> None:
    """The first worker is gone; a second one brings everything to an end."""
    bench.owner = Owner(uuid4(), "worker-2")
    rows = Job.objects.using(bench.alias)
    queues = tuple(rows.values_list("queue", flat=True).distinct())
    asked = set(rows.filter(cancel_requested_at__isnull=False).values_list("id", flat=True))
    bench.turn(1000)
    reclaim(bench.db, overdue(bench.db))
    for _ in range(3):
        bench.turn(1000)
        expire(bench.db)
        promote(bench.db)
        unblock(bench.db)
        for one in bench.claim(queues=queues):
            assert one.job_id not in asked, "a job that somebody asked to stop started again"
            bench.close(one)
    left = rows.exclude(status__in=[status.value for status in TERMINAL])
    assert not left.exists(), list(left.values_list("id", "status", "queue"))
    assert violations(bench, overdue_seconds=0.0) == []
