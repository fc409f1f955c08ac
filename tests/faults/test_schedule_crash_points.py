"""What writes schedules and workers is cut off before and after each statement and commit; asked again, it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from jobs.domain.advance import Step, advance
from jobs.domain.due_schedule import DueSchedule
from jobs.domain.execution import Execution
from jobs.domain.outcome import LogLine
from jobs.models import Job, Occurrence, Schedule, Worker
from jobs.store.attention import attend
from jobs.store.database import Database
from jobs.store.fire import Fired, fire, flag, park
from jobs.store.prune import prune, prune_occurrences
from jobs.store.submit import Submission
from jobs.store.unblock import cancel_previous, unblock
from jobs.store.workers import WorkerCard, beat, forget_silent, leave, mark_asleep, others_with_tz_data
from tests.faults.test_crash_points import Scene, cut_at_each_point, recover
from tests.support.schedules import Diary, submission
from tests.support.store import Bench
from tests.support.striking import Died


def planned(bench: Bench, queue: str, **fields: Any) -> Schedule:
    """A schedule of the queue's name, every minute from now on."""
    schedule = Diary(bench.alias, bench).schedule(name=queue, interval_seconds=60, **fields)
    if seen := due(bench, queue):  # it gets its first instant
        fire(bench.db, seen, advance(seen.timing, bench.now), {}, actor="planner")
    return schedule


def due(bench: Bench, queue: str) -> DueSchedule | None:
    return next((one for one in attend(bench.db).due if one.name == queue), None)


def of(bench: Bench, queue: str) -> DueSchedule:
    found = due(bench, queue)
    assert found is not None
    return found


def made(step: Step, queue: str) -> dict[datetime, Submission | str]:
    return {at: replace(submission("tests.work"), queue=queue, run_at=at) for at in step.occurrences}


def fire_own(bench: Bench, queue: str) -> None:
    seen = of(bench, queue)
    step = advance(seen.timing, bench.now)
    assert fire(bench.db, seen, step, made(step, queue), actor="planner") is not None


def firing(bench: Bench, queue: str) -> Scene:
    """Of five missed ones three are dealt with: a job, a reason and a job that waits for the first."""
    planned(bench, queue, catch_up="all", catch_up_cap=3, overlap="queue_one")
    bench.turn(300)
    seen = of(bench, queue)
    step = advance(seen.timing, bench.now)
    wanted = made(step, queue)
    assert len(wanted) == 3 and step.missed == 2
    wanted[step.occurrences[1]] = "its factory gave nothing to do"

    def act(db: Database) -> Fired | None:
        return fire(db, seen, step, wanted, problem="a part of it failed", actor="planner")

    return Scene(act)


def parking(bench: Bench, queue: str) -> Scene:
    planned(bench, queue)
    Schedule.objects.using(bench.alias).filter(name=queue).update(active=False)
    seen = of(bench, queue)
    return Scene(lambda db: park(db, seen))


def flagging(bench: Bench, queue: str) -> Scene:
    planned(bench, queue)
    bench.turn(60)
    seen = of(bench, queue)
    return Scene(lambda db: flag(db, seen, "it cannot be computed"))


def unblocking(bench: Bench, queue: str) -> Scene:
    planned(bench, queue, overlap="queue_one")
    bench.turn(60)
    fire_own(bench, queue)
    (first,) = bench.claim(queues=(queue,))
    bench.turn(60)
    fire_own(bench, queue)
    bench.close(first)
    return Scene(unblock)


def replacing_a_waiting_job(bench: Bench, queue: str) -> Scene:
    planned(bench, queue, overlap="cancel_previous")
    for _ in range(2):
        bench.turn(60)
        fire_own(bench, queue)
    return Scene(lambda db: cancel_previous(db, actor="planner"))


def replacing_a_running_job(bench: Bench, queue: str) -> Scene:
    planned(bench, queue, overlap="cancel_previous")
    bench.turn(60)
    fire_own(bench, queue)
    assert len(bench.claim(queues=(queue,))) == 1
    bench.turn(60)
    fire_own(bench, queue)
    return Scene(lambda db: cancel_previous(db, actor="planner"))


def pruning_beyond_the_limit(bench: Bench, queue: str) -> Scene:
    for _ in range(3):
        bench.submit(queue=queue, task=f"tests.{queue}")
    for one in bench.claim(queues=(queue,)):
        bench.close(one, result="1", log=(LogLine(0.1, "INFO", "shop", "hello"),))
        bench.turn(1)
    return Scene(lambda db: [prune(db, {}, history_limit=1) for _ in range(2)])


def pruning_occurrences(bench: Bench, queue: str) -> Scene:
    planned(bench, queue, catch_up="all", overlap="allow")
    bench.turn(180)
    fire_own(bench, queue)
    return Scene(lambda db: [prune_occurrences(db, kept=1) for _ in range(2)])


def a_card(queue: str) -> WorkerCard:
    slots = {Execution.THREAD: 4}
    return WorkerCard(uuid4(), queue, "host", 1, "both", "0.1", (queue,), slots)


def beating(bench: Bench, queue: str) -> Scene:
    card = a_card(queue)
    return Scene(lambda db: beat(db, card))


def leaving(bench: Bench, queue: str) -> Scene:
    card = a_card(queue)
    beat(bench.db, card)
    return Scene(lambda db: leave(db, card.id))


def falling_asleep(bench: Bench, queue: str) -> Scene:
    card = a_card(queue)
    beat(bench.db, card)
    return Scene(lambda db: mark_asleep(db, card.id, True))


def forgetting(bench: Bench, queue: str) -> Scene:
    beat(bench.db, a_card(queue))
    bench.turn(100)
    return Scene(lambda db: forget_silent(db, silent_seconds=50.0))


def telling_tz_data(bench: Bench, queue: str) -> Scene:
    card = a_card(queue)
    beat(bench.db, card)
    return Scene(lambda db: others_with_tz_data(db, card.id, {"Europe/Berlin": "digest"}, within_seconds=60.0))


SCENES = (
    firing, parking, flagging, unblocking, replacing_a_waiting_job, replacing_a_running_job, pruning_beyond_the_limit,
    pruning_occurrences,
    beating, leaving, falling_asleep, forgetting, telling_tz_data,
)  # fmt: skip


@pytest.mark.parametrize("error", [Died, pytest.param(OperationalError, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_cut_off_at_any_point_it_is_done_or_not_begun_and_asked_again_it_is_done(
    live_database: str, scene: Callable[[Bench, str], Scene], error: type[BaseException]
) -> None:
    bench = Bench(live_database)
    untouched: list[list[Any]] = []

    def watched(bench: Bench, queue: str) -> Scene:
        prepared = scene(bench, queue)
        untouched[:] = told(bench, queue)
        return prepared

    done: list[list[Any]] = []
    for queue, prepared in cut_at_each_point(bench, watched, error):
        done = done or told(bench, queue)
        assert told(bench, queue) in (untouched, done)
        prepared.act(bench.db)
        assert told(bench, queue) == done
    Schedule.objects.using(bench.alias).update(active=False)
    recover(bench)


def told(bench: Bench, queue: str) -> list[list[Any]]:
    """What there is, without instants: each scene has its own."""
    alias = bench.alias
    jobs = Job.objects.using(alias).filter(queue=queue).order_by("pk")
    occurrences = Occurrence.objects.using(alias).filter(schedule__name=queue).order_by("planned_at")
    return [
        [(job.status, job.cancel_requested_at is None, job.cause) for job in jobs],
        [(one.outcome, one.reason, one.missed, one.job_id is None) for one in occurrences],
        [
            (one.next_run_at is None, one.last_occurrence_at is None, one.missed, one.problem)
            for one in Schedule.objects.using(alias).filter(name=queue)
        ],
        list(Worker.objects.using(alias).filter(name=queue).values_list("asleep", "tz_data")),
    ]
