"""Schedules by their doors: as rows, and beside their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone as django_timezone

import jobs
from jobs import (
    InvalidArguments,
    InvalidOption,
    InvalidRule,
    JobsError,
    QueueNotDeclared,
    ScheduleNotFound,
    TaskNotFound,
    cron,
    every,
    factory,
    recurring,
)
from jobs.declare import Task, job
from jobs.declared import sync_declared
from jobs.domain.factories import factories
from jobs.domain.registry import registry
from jobs.models import Job, Release, Schedule
from tests.support import tasks

LATER = datetime(2100, 1, 1, 12, tzinfo=timezone.utc)


def row_of(database: str, name: str) -> Schedule:
    found: Schedule = Schedule.objects.using(database).get(name=name)
    return found


class Releases:
    """Declares a task with schedules, as one release or another would, and brings the rows into line."""

    names = ("tests.report", "tests.other")

    def declare(self, schedule: Any, name: str = "tests.report") -> Task[..., Any]:
        registry.remove(name)

        def body(what: str = "all") -> str:
            return what

        return job(name=name, schedule=schedule)(body)

    def forget(self) -> None:
        for name in self.names:
            registry.remove(name)


@pytest.fixture
def release() -> Iterator[Releases]:
    releases = Releases()
    yield releases
    releases.forget()


def test_a_schedule_is_stored_with_its_next_instant(database: str) -> None:
    name = jobs.schedule_recurring(
        tasks.add, cron="0 7 * * mon-fri", timezone="Europe/Berlin", args=[1], kwargs={"b": 2}, name="morning sum"
    )
    assert name == "morning sum"
    row = row_of(database, name)
    assert row.arguments == {"args": [1], "kwargs": {"b": 2}}
    assert row.next_run_at is not None and row.next_run_at > django_timezone.now()
    assert row.rule.describe() == "at 07:00, Monday to Friday, Europe/Berlin time"


def test_the_same_name_changes_the_schedule_and_saving_it_unchanged_changes_nothing(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    before = row_of(database, "s")
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    after = row_of(database, "s")
    assert (after.pk, after.next_run_at, after.anchor_at) == (before.pk, before.next_run_at, before.anchor_at)
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="s")
    assert before.anchor_at is not None
    assert row_of(database, "s").next_run_at == before.anchor_at + timedelta(seconds=3600)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"cron": "0 0 31 2 *"}, InvalidRule, "never matches any date"),
        ({"cron": "0 7 * * *", "timezone": "Mars/Base"}, InvalidRule, "timezone"),
        ({"every": 0.5}, InvalidRule, "interval"),
        ({"every": timedelta(days=400)}, InvalidRule, "interval"),
        ({"every": 60, "cron": "* * * * *"}, InvalidOption, "one of them"),
        ({}, InvalidOption, "one of them"),
        ({"every": 60, "overlap": "both"}, InvalidOption, "overlap"),
        ({"every": 60, "catch_up_cap": 1000}, InvalidOption, "catch_up_cap"),
        ({"every": 60, "args": [1, 2, 3]}, InvalidArguments, "too many"),
        ({"every": 60, "args": "ab"}, InvalidOption, "list or a tuple"),
        ({"every": 60, "args": [1], "options": {"queue": "nowhere"}}, QueueNotDeclared, "nowhere"),
        ({"every": 60, "args": [1], "options": {"prio": 3}}, InvalidOption, "priority"),
        ({"every": 60, "args": [1], "options": {"retry": jobs.RetryPolicy(3)}}, InvalidOption, "JSON"),
        ({"every": 60, "args": [1], "delay": 5}, InvalidOption, "its rule says"),
        ({"every": 60, "args": [1], "jitter": 120}, InvalidRule, "jitter"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_and_says_why(
    database: str, wrong: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        jobs.schedule_recurring(tasks.add, name="s", **wrong)
    assert not Schedule.objects.using(database).exists()


def test_something_that_is_no_task_is_refused(database: str) -> None:
    with pytest.raises(InvalidOption, match="is no task"):
        jobs.schedule_recurring(len, every=60, name="s")
    with pytest.raises(TaskNotFound):
        jobs.schedule_recurring("no.such.task", every=60, name="s")


def test_a_schedule_is_cancelled_by_its_name(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    assert jobs.cancel_recurring("s")
    assert not jobs.cancel_recurring("s")


def test_run_now_makes_one_job_and_moves_nothing(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s", options={"priority": 5})
    before = row_of(database, "s")
    made = recurring.run_now("s", actor="ann")
    row = Job.objects.using(database).get(pk=made.pk)
    assert (row.schedule_id, row.priority, row.arguments) == (before.pk, 5, {"args": [1], "kwargs": {}})
    after = row_of(database, "s")
    assert (after.next_run_at, after.last_occurrence_at) == (before.next_run_at, before.last_occurrence_at)
    with pytest.raises(ScheduleNotFound, match="lists them"):
        recurring.run_now("t")


def test_a_pause_is_kept_with_who_and_why_and_resuming_plans_anew(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    recurring.pause("s", actor="ann", reason="the disk is full")
    row = row_of(database, "s")
    assert (row.active, row.next_run_at, row.paused_by, row.reason) == (False, None, "ann", "the disk is full")
    recurring.resume("s")
    row = row_of(database, "s")
    assert row.active and row.next_run_at is not None and not row.paused_by
    recurring.pause("s")
    recurring.pause("s", until=LATER, actor="ann")  # the last word counts
    row = row_of(database, "s")
    assert (row.active, row.next_run_at, row.paused_until) == (True, None, LATER)


def test_a_stale_form_moves_no_instant_of_the_engine_back(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    stale = row_of(database, "s")
    Schedule.objects.using(database).update(last_occurrence_at=LATER, next_run_at=LATER + timedelta(seconds=60))
    stale.reason = "a note"
    stale.save()
    row = row_of(database, "s")
    assert (row.last_occurrence_at, row.next_run_at, row.reason) == (LATER, LATER + timedelta(seconds=60), "a note")


def test_a_factory_gives_the_arguments_or_nothing(database: str) -> None:
    @factory(tasks.add, name="tests.numbers")
    def numbers(scheduled_for: datetime) -> tuple[list[int], dict[str, int]] | None:
        return ([scheduled_for.year], {}) if wanted else None

    try:
        wanted = True
        assert jobs.schedule_recurring(numbers, every=60) == "tests.numbers"
        made = recurring.run_now("tests.numbers")
        assert Job.objects.using(database).get(pk=made.pk).arguments["args"] == [django_timezone.now().year]
        wanted = False
        with pytest.raises(JobsError, match="gives nothing"):
            recurring.run_now("tests.numbers")
    finally:
        factories._factories.pop("tests.numbers")


def test_what_a_release_declares_becomes_rows_once(database: str, release: Releases) -> None:
    release.declare([every(minutes=15, name="quarter"), cron("0 7 * * *", timezone="UTC", name="morning", args=["a"])])
    assert sync_declared()
    before = {row.name: row.next_run_at for row in Schedule.objects.using(database).all()}
    assert before.keys() == {"quarter", "morning"}
    assert all(row.declared for row in Schedule.objects.using(database).all())
    assert sync_declared()
    assert {row.name: row.next_run_at for row in Schedule.objects.using(database).all()} == before


def test_a_changed_declaration_changes_the_row_and_leaves_a_persons_pause(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()
    recurring.pause("tests.report", actor="ann")
    release.declare(every(minutes=30, overlap="allow"))
    assert sync_declared()
    row = row_of(database, "tests.report")
    assert (row.interval_seconds, row.overlap, row.active, row.paused_by) == (1800, "allow", False, "ann")


def test_a_declaration_that_is_gone_retires_its_row_and_a_persons_own_stays(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()
    jobs.schedule_recurring("tests.report", every=60, name="mine")
    release.declare(None)
    assert sync_declared()
    retired, mine = row_of(database, "tests.report"), row_of(database, "mine")
    assert (retired.retired, retired.next_run_at) == (True, None)
    assert not mine.retired and mine.next_run_at is not None


def test_an_older_release_that_starts_again_reverts_and_retires_nothing(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()  # the old release
    release.declare(every(minutes=30))
    release.declare(every(hours=1), name="tests.other")
    sync_declared()  # the new one
    before = list(Schedule.objects.using(database).values())
    release.forget()
    release.declare(every(minutes=15))
    assert not sync_declared()  # the old one, started again
    assert list(Schedule.objects.using(database).values()) == before
    assert sync_declared(force=True)  # a roll-back
    assert row_of(database, "tests.report").interval_seconds == 900
    assert row_of(database, "tests.other").retired


def test_an_older_release_does_not_bring_back_what_a_newer_one_retired(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()
    release.declare(None)
    sync_declared()
    release.declare(every(minutes=15))
    assert not sync_declared()
    assert row_of(database, "tests.report").retired


def test_a_release_that_declares_nothing_is_a_release_too(database: str, release: Releases) -> None:
    assert sync_declared()  # before the first schedule
    release.declare(every(minutes=15))
    assert sync_declared()
    release.forget()
    assert not sync_declared()  # the old one, started again
    assert not row_of(database, "tests.report").retired
    assert Release.objects.using(database).count() == 2


def test_of_two_tasks_that_declare_one_name_the_first_counts(
    database: str, release: Releases, caplog: pytest.LogCaptureFixture
) -> None:
    release.declare(every(minutes=15, name="same"), name="tests.other")
    release.declare(every(minutes=30, name="same"))
    sync_declared()
    assert row_of(database, "same").task == "tests.other"
    assert "tests.other and tests.report" in caplog.text


def test_a_held_row_does_not_keep_a_scheduler_from_starting(live_database: str, release: Releases) -> None:
    if live_database != "postgres":
        pytest.skip("a holder holds SQLite's one writer")
    release.declare(every(minutes=15))
    sync_declared()
    release.declare(every(minutes=30))
    with transaction.atomic(using=live_database):
        Schedule.objects.using(live_database).select_for_update().get(name="tests.report")
        assert in_a_thread(sync_declared)
    assert row_of(live_database, "tests.report").interval_seconds == 900
    sync_declared()
    assert row_of(live_database, "tests.report").interval_seconds == 1800


def in_a_thread(function: Callable[[], bool]) -> bool:
    with ThreadPoolExecutor(1) as pool:

        def call() -> bool:
            try:
                return function()
            finally:
                connections.close_all()

        return pool.submit(call).result(timeout=10)


def test_a_name_that_is_no_longer_declared_may_be_used_by_a_person(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()
    release.declare(None)
    sync_declared()
    jobs.schedule_recurring("tests.report", every=60)
    row = row_of(database, "tests.report")
    assert (row.declared, row.retired, row.next_run_at is not None) == (False, False, True)


def test_options_belong_into_the_schedule(database: str) -> None:
    with pytest.raises(InvalidOption, match="options="):
        jobs.schedule_recurring(tasks.add.using(priority=50), every=60, args=[1], name="s")
    with pytest.raises(InvalidOption, match="overlap"):
        jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s", options={"unique_key": "k"})


def test_a_flagged_rule_is_tried_again_when_it_is_saved(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    Schedule.objects.using(database).update(next_run_at=None, problem="this host knew no such zone")
    recurring.resume("s")
    row = row_of(database, "s")
    assert row.next_run_at is not None and not row.problem


def test_an_edit_while_an_occurrence_is_due_says_why_that_was_not_made(database: str) -> None:
    jobs.schedule_recurring(tasks.add, every=60, args=[1], name="s")
    Schedule.objects.using(database).update(next_run_at=django_timezone.now() - timedelta(seconds=5))
    jobs.schedule_recurring(tasks.add, every=3600, args=[1], name="s")
    assert row_of(database, "s").occurrences.using(database).get().reason == "the rule was edited"


def test_a_row_that_was_made_by_hand_is_not_taken_over(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    jobs.schedule_recurring("tests.report", every=60)
    sync_declared()
    row = row_of(database, "tests.report")
    assert (row.declared, row.interval_seconds) == (False, 60)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ([every(minutes=1), every(minutes=2)], "each needs a name"),
        ([every(minutes=1, name="a"), every(minutes=2, name="a")], "one name"),
        ("0 7 * * *", "give cron"),
    ],
)
def test_a_wrong_declaration_is_refused_at_import(release: Releases, schedule: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        release.declare(schedule)
    with pytest.raises(InvalidRule):
        cron("61 * * * *")


def test_a_schedule_that_is_declared_in_code_is_changed_there(database: str, release: Releases) -> None:
    release.declare(every(minutes=15))
    sync_declared()
    with pytest.raises(InvalidOption, match="declared in code"):
        jobs.schedule_recurring("tests.report", every=60)
    with pytest.raises(InvalidOption, match="declared in code"):
        jobs.cancel_recurring("tests.report")
