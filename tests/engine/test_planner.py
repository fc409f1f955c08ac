"""The agent that makes jobs of due occurrences: on time, whatever one schedule does."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import DataError, OperationalError, transaction

import jobs
from jobs import Context, factory, recurring
from jobs.declare import Task
from jobs.domain.factories import factories
from jobs.domain.registry import registry
from jobs.engine import planner, tz_watch
from jobs.models import Job, Occurrence, Schedule, Worker
from jobs.models.clock import database_now
from jobs.store.fire import fire
from tests.support import tasks
from tests.support.engine import running
from tests.support.store import Bench
from tests.support.waiting import wait_until

FACTORIES = ("tests.slow", "tests.broken", "tests.exiting", "tests.nothing")
LATER = datetime(2100, 1, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def told() -> Iterator[Task[[], str]]:
    def body(context: Context) -> str:
        return f"{context.scheduled_for}"

    yield jobs.job(name="tests.told", takes_context=True)(body)
    registry.remove("tests.told")


def make_due(alias: str, name: str, seconds_ago: float = 0.0) -> datetime:
    """As if its next instant had come just now."""
    at: datetime = database_now(alias) - timedelta(seconds=seconds_ago)
    Schedule.objects.using(alias).filter(name=name).update(next_run_at=at)
    return at


def jobs_of(alias: str, name: str) -> list[Job]:
    row = Schedule.objects.using(alias).get(name=name)
    return list(Job.objects.using(alias).filter(schedule_id=row.pk).order_by("id"))


def test_a_job_knows_the_instant_it_was_planned_for(live_database: str, told: Any) -> None:
    jobs.schedule_recurring(told, every=3600, name="s")
    at = make_due(live_database, "s")
    with running():
        wait_until(lambda: [row.status for row in jobs_of(live_database, "s")] == ["completed"], timeout=10)
    (row,) = jobs_of(live_database, "s")
    assert row.result == f"{at}" and row.scheduled_for == at


def test_a_schedule_of_one_second_fires_every_second(live_database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=1, args=[1], name="s", overlap="allow")
    with running(poll=5.0):
        wait_until(lambda: len(jobs_of(live_database, "s")) >= 3, timeout=15)
    planned = [row.scheduled_for for row in jobs_of(live_database, "s") if row.scheduled_for][:3]
    assert [second - first for first, second in itertools.pairwise(planned)] == [timedelta(seconds=1)] * 2


def test_a_task_that_is_gone_is_flagged_and_the_others_fire(live_database: str, told: Any) -> None:
    for name in ("gone", "good"):
        jobs.schedule_recurring(
            told if name == "gone" else tasks.add,
            every=3600,
            anchor=LATER,
            name=name,
            args=[] if name == "gone" else [1],
        )
    registry.remove("tests.told")
    make_due(live_database, "gone", seconds_ago=planner.UNKNOWN_TASK_PATIENCE + 1)
    make_due(live_database, "good")
    with running():
        wait_until(lambda: len(jobs_of(live_database, "good")) == 1, timeout=10)
        gone = Schedule.objects.using(live_database).get(name="gone")
        wait_until(lambda: Occurrence.objects.using(live_database).filter(schedule=gone).exists(), timeout=10)
    gone.refresh_from_db()
    assert "tests.told" in gone.problem and gone.next_run_at > database_now(live_database)
    assert jobs_of(live_database, "gone") == []


def test_a_task_that_is_unknown_here_is_left_to_others_for_a_minute(live_database: str, told: Any) -> None:
    for name in ("new", "good"):
        task, args = (told, []) if name == "new" else (tasks.add, [1])
        jobs.schedule_recurring(task, every=3600, name=name, args=args)
    registry.remove("tests.told")
    at = make_due(live_database, "new")
    make_due(live_database, "good")
    with running():
        wait_until(lambda: len(jobs_of(live_database, "good")) == 1, timeout=10)
    new = Schedule.objects.using(live_database).get(name="new")
    assert (new.next_run_at, new.problem) == (at, "")


@pytest.fixture
def slow_factory() -> Iterator[threading.Event]:
    go_on = threading.Event()

    @factory(tasks.add, name="tests.slow")
    def slow(scheduled_for: datetime) -> Any:
        go_on.wait(30)
        return [1], {}

    @factory(tasks.add, name="tests.broken")
    def broken(scheduled_for: datetime) -> Any:
        raise LookupError("no rates today")

    @factory(tasks.add, name="tests.exiting")
    def exiting(scheduled_for: datetime) -> Any:
        raise SystemExit(1)

    @factory(tasks.add, name="tests.nothing")
    def nothing(scheduled_for: datetime) -> Any:
        return None

    yield go_on
    go_on.set()
    for name in FACTORIES:
        factories._factories.pop(name)


def test_a_factory_that_hangs_or_raises_or_gives_nothing_hurts_no_other(
    live_database: str, slow_factory: threading.Event
) -> None:
    for name in FACTORIES:
        jobs.schedule_recurring(factories.get(name), every=3600)
        make_due(live_database, name)
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="good")
    make_due(live_database, "good")

    def reason_of(name: str) -> str:
        row = Occurrence.objects.using(live_database).filter(schedule__name=name, outcome="skipped").first()
        return row.reason if row else ""

    with running():
        wait_until(lambda: len(jobs_of(live_database, "good")) == 1, timeout=10)
        wait_until(lambda: "no rates today" in reason_of("tests.broken"), timeout=10)
        wait_until(lambda: "SystemExit" in reason_of("tests.exiting"), timeout=10)
        wait_until(lambda: reason_of("tests.nothing") == "its factory gave nothing to do", timeout=10)
        assert jobs_of(live_database, "tests.slow") == []
        slow_factory.set()
        wait_until(lambda: len(jobs_of(live_database, "tests.slow")) == 1, timeout=10)
    assert "no rates today" in Schedule.objects.using(live_database).get(name="tests.broken").problem


def test_while_the_database_refuses_a_factory_is_not_asked_again(
    live_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[datetime] = []

    @factory(tasks.add, name="tests.counted")
    def counted(scheduled_for: datetime) -> Any:
        asked.append(scheduled_for)
        return [1], {}

    refusals = iter([True] * 3)

    def fire_at_last(*args: Any, **options: Any) -> Any:
        if next(refusals, False):
            raise OperationalError("the database is read-only")
        return fire(*args, **options)

    monkeypatch.setattr(planner, "fire", fire_at_last)
    try:
        jobs.schedule_recurring(counted, every=3600)
        make_due(live_database, "tests.counted")
        with running(), caplog.at_level(logging.WARNING):
            wait_until(lambda: len(jobs_of(live_database, "tests.counted")) == 1, timeout=15)
    finally:
        factories._factories.pop("tests.counted")
    assert len(asked) == 1
    assert caplog.text.count("read-only") == 1  # rate-limited, and without a traceback
    assert "Traceback" not in caplog.text


def test_a_job_that_the_database_refuses_is_skipped_with_the_reason(
    live_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(db: Any, schedule: Any, step: Any, wanted: Any, **options: Any) -> Any:
        if schedule.name == "bad" and any(not isinstance(one, str) for one in wanted.values()):
            raise DataError("invalid input")
        return fire(db, schedule, step, wanted, **options)

    monkeypatch.setattr(planner, "fire", refusing)
    for name in ("bad", "good"):
        jobs.schedule_recurring(tasks.add, every=3600, args=[1], name=name)
        make_due(live_database, name)
    with running():
        wait_until(lambda: len(jobs_of(live_database, "good")) == 1, timeout=10)
        skipped = Occurrence.objects.using(live_database).filter(schedule__name="bad")
        wait_until(lambda: [row.reason for row in skipped] == ["the database refused its job: invalid input"])
    bad = Schedule.objects.using(live_database).get(name="bad")
    assert bad.next_run_at is not None and "invalid input" in bad.problem


def test_one_that_waits_for_an_earlier_job_runs_when_that_has_ended(live_database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="s", overlap="queue_one")
    bench = Bench(live_database)
    bench.now = database_now(live_database)
    with running(role="scheduler"):
        recurring.run_now("s")
        (first,) = bench.claim()
        make_due(live_database, "s")
        wait_until(lambda: [row.status for row in jobs_of(live_database, "s")] == ["running", "blocked"], timeout=10)
        bench.close(first)
        wait_until(lambda: [row.status for row in jobs_of(live_database, "s")] == ["completed", "pending"], timeout=10)


def test_other_time_zone_data_elsewhere_is_warned_about_once(
    live_database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tz_watch, "LOOK_EVERY", 0.0)
    jobs.schedule_recurring(tasks.add, cron="0 7 * * *", timezone="America/Vancouver", args=[1], name="s")
    with running(name="one"), caplog.at_level(logging.WARNING, "jobs.engine.tz_watch"):
        other = Worker.objects.using(live_database).get()
        other.pk, other.name = "00000000-0000-0000-0000-000000000001", "two"
        other.tz_data = {"America/Vancouver": "0" * 16, "Europe/Berlin": "1" * 16}
        other.save(using=live_database, force_insert=True)
        wait_until(lambda: "worker two has other time zone data for America/Vancouver than" in caplog.text, timeout=10)
    assert caplog.text.count("other time zone data") == 1


def test_a_worker_of_the_other_role_plans_nothing(live_database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="s")
    at = make_due(live_database, "s")
    marker = tasks.add.enqueue(1)
    with running(role="worker") as scheduler:
        assert scheduler.join(10, due_only=True)
        wait_until(lambda: jobs.get(marker).status == "completed", timeout=10)
    assert Schedule.objects.using(live_database).get(name="s").next_run_at == at


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_a_due_schedule_that_somebody_holds_delays_no_other(live_database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="held")
    jobs.schedule_recurring(tasks.add, every=1, args=[1], name="good", overlap="allow")
    make_due(live_database, "held")
    with transaction.atomic(using=live_database):
        Schedule.objects.using(live_database).select_for_update().get(name="held")
        with running(poll=5.0):
            wait_until(lambda: len(jobs_of(live_database, "good")) >= 4, timeout=15)
    planned = [row.scheduled_for for row in jobs_of(live_database, "good") if row.scheduled_for][:4]
    assert [second - first for first, second in itertools.pairwise(planned)] == [timedelta(seconds=1)] * 3


def test_a_task_that_is_gone_is_flagged_however_often_it_recurs(live_database: str, told: Any) -> None:
    jobs.schedule_recurring(told, every=30, name="gone")
    registry.remove("tests.told")
    make_due(live_database, "gone", seconds_ago=planner.UNKNOWN_TASK_PATIENCE + 1)
    with running():
        wait_until(lambda: Schedule.objects.using(live_database).get(name="gone").problem, timeout=10)
