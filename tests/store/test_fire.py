"""Occurrences become jobs, once each, by the rule, the pause, the overlap and the catch-up of their schedule."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connections

from jobs.domain.status import Status
from jobs.models import Job, Occurrence, Payload, Schedule
from jobs.store.attention import attend
from jobs.store.explain import Surroundings, explain
from jobs.store.prune import prune_occurrences
from jobs.store.unblock import cancel_previous, unblock
from jobs.testing import run_jobs
from tests.support.schedules import Diary
from tests.support.tasks import add

NOON = datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def diary(database: str) -> Diary:
    return Diary(database)


def test_a_due_occurrence_becomes_one_job_that_carries_its_instant(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    diary.turn(60)
    assert diary.round() == 1
    job = Job.objects.using(diary.alias).get()
    assert (job.schedule_id, job.scheduled_for, job.status) == (schedule.pk, NOON + timedelta(seconds=60), "pending")
    assert diary.round() == 0
    claimed = diary.bench.claim()[0]
    assert claimed.scheduled_for == NOON + timedelta(seconds=60)


def test_fifty_schedules_for_ten_minutes_make_five_hundred_jobs_though_history_is_pruned(diary: Diary) -> None:
    for number in range(50):
        diary.schedule(name=f"s{number}", interval_seconds=60, overlap="allow")
    made = 0
    for _ in range(60):
        diary.turn(10)
        made += diary.round()
        Occurrence.objects.using(diary.alias).all().delete()
        diary.finish_all()
        diary.prune_everything()
    assert made == 500


@pytest.mark.parametrize(
    ("catch_up", "made", "missed"), [("coalesce", 1, 59), ("all", 3, 57), ("skip", 1, 59)], ids=str
)
def test_after_an_hour_of_downtime_what_was_missed_is_caught_up_as_asked(
    diary: Diary, catch_up: str, made: int, missed: int
) -> None:
    schedule = diary.schedule(interval_seconds=60, catch_up=catch_up, catch_up_cap=3, overlap="allow")
    diary.turn(3600)
    assert diary.round() == made
    schedule.refresh_from_db()
    assert schedule.missed == missed
    assert schedule.next_run_at == NOON + timedelta(seconds=3660)
    newest = Job.objects.using(diary.alias).order_by("-scheduled_for")[0]
    assert newest.scheduled_for == NOON + timedelta(seconds=3600)


def test_a_late_occurrence_is_skipped_with_its_reason_where_nothing_is_caught_up(diary: Diary) -> None:
    diary.schedule(expression="0 * * * *", catch_up="skip")
    diary.turn(3600 + 61)
    assert diary.round() == 0
    skipped = Occurrence.objects.using(diary.alias).get()
    assert (skipped.outcome, skipped.reason, skipped.missed) == ("skipped", "it was too late", 0)
    diary.turn(2 * 3600)
    assert diary.round() == 0
    assert Schedule.objects.using(diary.alias).get().missed == 1


@pytest.mark.parametrize("state", ["pending", "running", "retry_wait"])
def test_an_earlier_job_that_has_not_ended_suppresses_the_next_and_says_so(diary: Diary, state: str) -> None:
    diary.schedule(interval_seconds=60)
    diary.turn(60)
    diary.round()
    if state != "pending":
        claimed = diary.bench.claim()[0]
        if state == "retry_wait":
            diary.bench.close(claimed, Status.RETRY_WAIT, delay_seconds=3600.0, failures=1)
    diary.turn(60)
    assert diary.round() == 0
    assert Occurrence.objects.using(diary.alias).first().reason == "an earlier job of the schedule has not ended"
    diary.finish_all()


def test_one_may_wait_and_runs_when_the_earlier_one_has_ended(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="queue_one")
    diary.turn(60)
    diary.round()
    first = diary.bench.claim()[0]
    diary.turn(60)
    assert diary.round() == 1
    diary.turn(60)
    assert diary.round() == 0  # one waits already
    waiting = Job.objects.using(diary.alias).get(status="blocked")
    assert unblock(diary.bench.db) == 0
    diary.bench.close(first)
    assert unblock(diary.bench.db) == 1
    assert diary.bench.status(waiting.pk) == "pending"


def test_the_earlier_one_is_cancelled_and_the_new_one_waits_until_it_has_ended(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="cancel_previous")
    diary.turn(60)
    diary.round()
    first = diary.bench.claim()[0]
    diary.turn(60)
    assert diary.round() == 1
    assert cancel_previous(diary.bench.db, actor="x") == 1
    assert unblock(diary.bench.db) == 0
    diary.bench.close(first, Status.CANCELLED)
    assert unblock(diary.bench.db) == 1


def test_the_jobs_of_one_catch_up_run_one_after_the_other(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, catch_up="all", catch_up_cap=3, overlap="cancel_previous")
    diary.turn(600)
    assert diary.round() == 3
    states = list(Job.objects.using(diary.alias).order_by("id").values_list("status", flat=True))
    assert states == ["pending", "blocked", "blocked"]
    assert cancel_previous(diary.bench.db, actor="x") == 0  # they do not suppress each other
    for _ in range(2):
        diary.bench.close(diary.bench.claim()[0])
        assert unblock(diary.bench.db) == 1


def test_nothing_fires_after_a_pause_and_resuming_waits_for_the_next_instant(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(active=False)
    diary.turn(90)
    assert diary.round() == 0
    Schedule.objects.using(diary.alias).update(active=True)
    assert diary.round() == 0
    schedule.refresh_from_db()
    assert schedule.next_run_at == NOON + timedelta(seconds=120)
    diary.turn(30)
    assert diary.round() == 1


def test_a_pause_with_an_end_is_no_downtime(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(paused_until=NOON + timedelta(seconds=601), paused_by="ann")
    diary.turn(630)  # nobody looked meanwhile
    assert diary.round() == 0
    schedule.refresh_from_db()
    assert (schedule.paused_until, schedule.paused_by) == (None, "")
    assert schedule.next_run_at == NOON + timedelta(seconds=660)


@pytest.mark.parametrize("stopped", [{"active": False}, {"retired": True}], ids=str)
def test_the_end_of_a_pause_is_no_start_for_one_that_was_stopped_meanwhile(
    diary: Diary, stopped: dict[str, bool]
) -> None:
    diary.schedule(interval_seconds=60)
    rows = Schedule.objects.using(diary.alias)
    rows.update(paused_until=NOON + timedelta(seconds=100), **stopped)
    for _ in range(3):
        assert diary.round() == 0
        diary.turn(100)
    assert attend(diary.bench.db).due == ()
    rows.update(active=True, retired=False)
    assert diary.round() == diary.round() == 0
    assert rows.get().next_run_at == NOON + timedelta(seconds=360)


@pytest.mark.parametrize("by", ["update", "save"])
def test_one_whose_last_job_could_not_be_made_goes_on_after_a_pause(diary: Diary, by: str) -> None:
    schedule = diary.schedule(interval_seconds=60)
    diary.turn(60)
    assert diary.fire_nothing("its task is gone") == 1
    rows = Schedule.objects.using(diary.alias)
    for active in (False, True):
        if by == "update":
            rows.update(active=active)
        else:
            schedule.active = active
            diary.save(schedule)
        diary.round()
        diary.turn(30)
    schedule.refresh_from_db()
    assert schedule.next_run_at == NOON + timedelta(seconds=120)
    assert diary.round() == 1


@pytest.mark.parametrize("paused", [False, True])
def test_an_edit_by_update_is_noticed_and_the_old_rule_fires_no_more(diary: Diary, paused: bool) -> None:
    schedule = diary.schedule(interval_seconds=60)
    diary.turn(30)
    Schedule.objects.using(diary.alias).update(interval_seconds=7)
    diary.round()
    schedule.refresh_from_db()
    assert schedule.next_run_at == NOON + timedelta(seconds=35)
    diary.turn(5)
    assert diary.round() == 1


def test_a_due_occurrence_of_a_rule_that_was_edited_since_is_recorded_as_skipped(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    diary.turn(61)
    Schedule.objects.using(diary.alias).update(interval_seconds=3600)
    assert diary.round() == 0
    assert schedule.occurrences.using(diary.alias).get().reason == "the rule was edited"


@pytest.mark.parametrize("broken", [{"expression": "61 * * * *"}, {"timezone": "Mars/Base"}, {"interval_seconds": 0}])
def test_a_rule_that_cannot_be_computed_is_flagged_and_hurts_no_other(diary: Diary, broken: dict[str, Any]) -> None:
    bad = diary.schedule(name="a", expression="* * * * *", timezone="UTC")
    diary.schedule(name="b", interval_seconds=60)
    Schedule.objects.using(diary.alias).filter(name="a").update(**broken)
    diary.turn(60)
    assert diary.round() == 1
    bad.refresh_from_db()
    assert bad.problem and bad.problem_since
    assert diary.round() == 0
    Schedule.objects.using(diary.alias).filter(name="a").update(
        expression="* * * * *", timezone="UTC", interval_seconds=None
    )
    diary.round()
    bad.refresh_from_db()
    assert not bad.problem and bad.next_run_at


def test_a_person_may_skip_the_next_one(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(skip_next=True, skipped_by="ann", reason="a holiday")
    diary.turn(60)
    assert diary.round() == 0
    assert schedule.occurrences.using(diary.alias).get().reason == "skipped by ann: a holiday"
    schedule.refresh_from_db()
    assert (schedule.skip_next, schedule.skipped_by, schedule.reason) == (False, "", "")
    diary.turn(60)
    assert diary.round() == 1


def test_one_that_a_person_skipped_is_not_counted_as_missed_as_well(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(skip_next=True)
    diary.turn(180)
    assert diary.fire() == [NOON + timedelta(seconds=180)]
    schedule.refresh_from_db()
    assert (schedule.missed, schedule.skip_next) == (1, False)
    skipped = schedule.occurrences.using(diary.alias).get(outcome="skipped")
    assert (skipped.planned_at, skipped.reason) == (NOON + timedelta(seconds=60), "skipped")


@pytest.mark.parametrize("jump", [3600, 86_400, -3600, -86_400])
def test_a_jump_of_the_clock_doubles_and_loses_nothing(diary: Diary, jump: int) -> None:
    diary.schedule(interval_seconds=60, overlap="allow")
    seen = []
    for _ in range(5):
        diary.turn(60)
        seen += diary.fire()
    diary.turn(jump)
    seen += diary.fire()
    diary.turn(-jump)
    for _ in range(5):
        diary.turn(60)
        seen += diary.fire()
    assert len(seen) == len(set(seen))
    # What the wrong clock has dealt with is spent; whatever is after that is made.
    assert seen[:5] == [NOON + timedelta(seconds=60 * n) for n in range(1, 6)]
    if jump < 0:
        assert seen == [NOON + timedelta(seconds=60 * n) for n in range(1, 11)]


def test_a_rule_that_is_exhausted_is_finished(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60, end_at=NOON + timedelta(seconds=61))
    diary.turn(60)
    assert diary.round() == 1
    schedule.refresh_from_db()
    assert (schedule.next_run_at, schedule.is_exhausted) == (None, True)
    diary.turn(600)
    assert diary.round() == 0


def test_a_blocked_job_says_which_one_it_waits_for(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="queue_one")
    diary.turn(60)
    diary.round()
    first = diary.bench.claim()[0]
    diary.turn(60)
    diary.round()
    waiting = Job.objects.using(diary.alias).get(status="blocked")
    around = Surroundings(known_tasks=["tests.work"], queues=["default"], renew_seconds=20.0)
    said = explain(diary.bench.db, waiting.pk, around)
    assert said is not None and said.reason == "blocked"
    assert said.sentence == f"Waits for job {first.job_id}, an earlier one of its schedule, to end (running now)."
    diary.bench.close(first)
    said = explain(diary.bench.db, waiting.pk, around)
    assert said is not None and "at its next look" in said.sentence


def test_a_schedule_may_be_deleted_by_sql(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    diary.turn(60)
    diary.round()
    with connections[diary.alias].cursor() as cursor:
        cursor.execute("DELETE FROM jobs_schedule WHERE id = %s", [schedule.pk])
    assert (prune_occurrences(diary.bench.db), prune_occurrences(diary.bench.db)) == (1, 0)
    diary.turn(60)
    assert diary.round() == 0
    assert Job.objects.using(diary.alias).count() == 1


def test_a_hundred_runs_of_a_long_job_do_not_drift(diary: Diary) -> None:
    """Each look is late, and each job takes 45 of the 60 seconds: neither adds up."""
    diary.schedule(interval_seconds=60)
    started = []
    for _ in range(100):
        next_in = attend(diary.bench.db).next_in
        assert next_in is not None
        diary.turn(next_in + 0.3)
        assert diary.round() == 1
        (claimed,) = diary.bench.claim()
        started.append(diary.now)
        diary.turn(45)
        diary.bench.close(claimed)
    drifts = [at - (NOON + timedelta(seconds=60 * n)) for n, at in enumerate(started, 1)]
    assert max(drifts) == min(drifts) == timedelta(seconds=0.3)


def test_an_edit_during_a_pause_counts_from_then_on(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(paused_until=NOON + timedelta(seconds=600))
    diary.round()
    Schedule.objects.using(diary.alias).update(interval_seconds=3600)
    diary.round()
    diary.turn(3700)  # nobody looked between the end of the pause and now
    diary.round()
    diary.round()
    assert [one.planned_at for one in schedule.occurrences.using(diary.alias).all()] == [NOON + timedelta(seconds=3600)]


def test_an_instant_at_the_very_end_of_a_pause_fires(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60)
    Schedule.objects.using(diary.alias).update(paused_until=NOON + timedelta(seconds=120))
    diary.turn(125)
    diary.round()
    diary.round()
    assert [one.planned_at for one in schedule.occurrences.using(diary.alias).all()] == [NOON + timedelta(seconds=120)]


INFINITE = [
    {"paused_until": "'infinity'"},
    {"end_at": "'infinity'"},
    {"start_at": "'-infinity'"},
    {"next_run_at": "'-infinity'"},
    {"next_run_at": "'0001-01-01 00:00:00+00'"},
    {"end_at": "'20000-01-01 00:00:00+00'"},
    {"last_occurrence_at": "'-infinity'"},
]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("values", INFINITE, ids=str)
def test_a_row_that_cannot_be_read_hurts_no_other(diary: Diary, values: dict[str, str]) -> None:
    diary.schedule(name="bad", interval_seconds=60)
    good = diary.schedule(name="good", interval_seconds=60)
    (column, value) = next(iter(values.items()))
    diary.bench.db.execute(f"UPDATE jobs_schedule SET {column} = {value} WHERE name = 'bad'")
    diary.turn(60)
    assert NOON + timedelta(seconds=60) in diary.fire()
    assert Job.objects.using(diary.alias).filter(schedule_id=good.pk).exists()


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_another_time_zone_of_the_session_is_no_edit(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, start_at=NOON)
    diary.turn(60)
    diary.bench.db.execute("SET LOCAL TimeZone = 'America/New_York'")
    assert diary.round() == 1


def test_run_jobs_lets_go_what_waits_for_an_earlier_job(diary: Diary) -> None:
    diary.schedule(task=add.name, interval_seconds=60, catch_up="all", catch_up_cap=3)
    diary.turn(600)
    assert diary.round() == 3
    Payload.objects.using(diary.alias).update(arguments={"args": [1], "kwargs": {}})
    run_jobs(now=diary.now)
    assert set(Job.objects.using(diary.alias).values_list("status", flat=True)) == {"completed"}
