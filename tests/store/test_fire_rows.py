"""What a planner reads in the rows of schedules, whoever wrote it there, and what it leaves in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.domain.advance import advance
from jobs.domain.claim import Claim
from jobs.domain.status import Status
from jobs.models import Job, Occurrence, Schedule
from jobs.store.attention import attend
from jobs.store.fire import fire, flag, park
from jobs.store.submit import Submission
from jobs.store.unblock import cancel_previous, unblock
from tests.support.schedules import Diary, submission

NOON = datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def diary(database: str) -> Diary:
    return Diary(database)


def stored(diary: Diary) -> Any:
    return Schedule.objects.using(diary.alias)


def test_a_row_that_was_written_since_it_was_seen_is_left_alone(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    diary.turn(60)
    (seen,) = attend(diary.bench.db).due
    step = advance(seen.timing, diary.now)
    wanted: dict[datetime, Submission | str] = dict.fromkeys(step.occurrences, submission(seen.task))
    stored(diary).update(active=False)
    before = stored(diary).values().get()
    assert fire(diary.bench.db, seen, step, wanted, actor="planner") is None
    assert not park(diary.bench.db, seen)
    assert not flag(diary.bench.db, seen, "broken")
    assert stored(diary).values().get() == before
    assert not Job.objects.using(diary.alias).exists()


def test_an_edited_rule_is_not_fired_by_whoever_saw_the_old_one(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    diary.turn(60)
    (seen,) = attend(diary.bench.db).due
    stored(diary).update(interval_seconds=7)
    assert fire(diary.bench.db, seen, advance(seen.timing, diary.now), {}, actor="planner") is None


def test_what_has_waited_longest_comes_first_and_the_next_instant_of_all_is_told(diary: Diary) -> None:
    diary.schedule(name="late", interval_seconds=600)
    diary.schedule(name="early", interval_seconds=60)
    assert attend(diary.bench.db).next_in == 60
    diary.turn(600)
    assert [one.name for one in attend(diary.bench.db).due] == ["early", "late"]


@pytest.mark.parametrize(
    "changes",
    [
        {"active": False},
        {"retired": True},
        {"paused_until": NOON + timedelta(days=1)},
        {"end_at": NOON + timedelta(seconds=1), "start_at": NOON},
    ],
    ids=str,
)
def test_one_that_may_not_fire_is_written_once_and_asks_for_no_more_attention(
    diary: Diary, changes: dict[str, Any]
) -> None:
    diary.schedule(interval_seconds=60)
    stored(diary).update(**changes)
    diary.turn(90)
    assert diary.round() == 0
    assert stored(diary).get().next_run_at is None
    assert attend(diary.bench.db).due == ()


def test_a_pause_that_ended_unnoticed_leaves_the_planned_instant_and_is_forgotten(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    stored(diary).update(paused_until=NOON + timedelta(seconds=30), paused_by="ann", reason="lunch")
    diary.turn(40)
    assert diary.round() == 0
    row = stored(diary).get()
    assert (row.paused_until, row.paused_by, row.reason) == (None, "", "")
    assert row.next_run_at == NOON + timedelta(seconds=60)


def test_a_rule_that_was_edited_in_a_pause_starts_over_from_now(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    stored(diary).update(paused_until=NOON + timedelta(seconds=100), interval_seconds=7)
    diary.turn(300)
    assert [diary.round() for _ in range(3)] == [0, 0, 0]
    assert stored(diary).get().next_run_at == NOON + timedelta(seconds=301)


def test_an_edit_never_goes_back_behind_the_last_instant(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    diary.turn(86_400)
    assert diary.round() == 1
    diary.turn(-86_400)
    stored(diary).update(interval_seconds=7)
    diary.round()
    row = stored(diary).get()
    assert row.next_run_at > row.last_occurrence_at == NOON + timedelta(days=1)
    stored(diary).update(next_run_at=row.last_occurrence_at)  # as a hand in SQL may do
    diary.turn(86_400)
    assert diary.round() == 0


@pytest.mark.parametrize(
    "changes",
    [{"overlap": "x", "catch_up": "y"}, {"timezone": "Mars/Base"}]
    + [{"catch_up": "all", "catch_up_cap": cap} for cap in (0, 1000)],
    ids=str,
)
def test_a_word_or_number_that_means_nothing_here_does_not_keep_it_from_firing(
    diary: Diary, changes: dict[str, Any]
) -> None:
    diary.schedule(interval_seconds=60)
    stored(diary).update(**changes)
    for _ in range(2):  # an edit starts over
        diary.turn(60)
        diary.round()
    assert Job.objects.using(diary.alias).count() == 1
    assert stored(diary).get().problem == ""


def test_what_was_planned_under_an_edited_rule_but_not_due_yet_is_no_occurrence(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    diary.turn(30)
    stored(diary).update(interval_seconds=3600)
    diary.round()
    assert not Occurrence.objects.using(diary.alias).exists()


def test_an_occurrence_that_history_knows_is_not_made_again_though_its_schedule_forgot_it(diary: Diary) -> None:
    schedule = diary.schedule(interval_seconds=60, overlap="allow", catch_up="all")
    Occurrence.objects.using(diary.alias).create(
        schedule=schedule, planned_at=NOON + timedelta(seconds=60), outcome="made", job_id=7
    )
    diary.turn(120)
    assert diary.fire() == [NOON + timedelta(seconds=120)]
    known = Occurrence.objects.using(diary.alias).earliest("planned_at")
    assert (known.outcome, known.job_id) == ("made", 7)


def test_jobs_that_may_overlap_are_not_made_to_wait_for_each_other(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="allow", catch_up="all")
    for _ in range(2):
        diary.turn(120)
        diary.round()
    jobs = Job.objects.using(diary.alias).order_by("id")
    assert list(jobs.values_list("status", flat=True)) == ["pending"] * 4
    assert list(jobs.values_list("scheduled_for", flat=True)) == [NOON + timedelta(minutes=n) for n in range(1, 5)]


def test_a_problem_is_told_with_its_first_instant_and_gone_with_the_next_job(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    for _ in range(2):
        diary.turn(60)
        diary.fire_nothing("no such task")
    row = stored(diary).get()
    assert (row.problem, row.problem_since) == ("no such task", NOON + timedelta(seconds=60))
    diary.turn(60)
    assert diary.round() == 1
    row = stored(diary).get()
    assert (row.problem, row.problem_since) == ("", None)


def test_missed_instants_add_up_and_stand_beside_one_occurrence_each(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="allow", catch_up="all", catch_up_cap=2)
    for _ in range(2):
        diary.turn(300)
        assert diary.round() == 2
    assert stored(diary).get().missed == 6
    missed = Occurrence.objects.using(diary.alias).order_by("planned_at").values_list("missed", flat=True)
    assert list(missed) == [3, 0, 3, 0]


def test_a_rule_that_breaks_after_its_end_waits_for_an_edit_and_keeps_since_when(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, end_at=NOON + timedelta(seconds=61))
    diary.turn(60)
    assert diary.round() == 1
    for seconds in (0, -1):
        stored(diary).update(interval_seconds=seconds, paused_until=NOON)
        diary.turn(60)
        diary.round()
        row = stored(diary).get()
        assert (row.is_exhausted, row.paused_until) == (False, None)
        assert row.problem_since == NOON + timedelta(seconds=120)
    assert len(attend(diary.bench.db).due) == 1  # it is tried again: the fault may have been a host's


def test_a_wish_to_skip_the_next_one_outlives_an_edit(diary: Diary) -> None:
    diary.schedule(interval_seconds=60)
    stored(diary).update(skip_next=True, skipped_by="ann", interval_seconds=7)
    diary.turn(1)
    diary.round()
    row = stored(diary).get()
    assert (row.skip_next, row.skipped_by) == (True, "ann")


def test_a_job_that_waits_for_a_retry_is_no_waiting_one(diary: Diary) -> None:
    diary.schedule(interval_seconds=60, overlap="queue_one")
    diary.turn(60)
    diary.round()
    diary.turn(60)
    assert diary.round() == 0  # the first has not begun: it waits
    diary.bench.close(diary.bench.claim()[0], Status.RETRY_WAIT, delay_seconds=3600.0, failures=1)
    diary.turn(60)
    assert diary.round() == 1
    diary.turn(60)
    assert diary.round() == 0


def test_the_holder_of_a_unique_key_stands_for_the_occurrence(diary: Diary) -> None:
    holder = diary.bench.submit(unique_key="one").job_id
    diary.schedule(interval_seconds=60)
    diary.turn(60)
    (seen,) = attend(diary.bench.db).due
    step = advance(seen.timing, diary.now)
    keyed: dict[datetime, Submission | str] = dict.fromkeys(
        step.occurrences, replace(submission(seen.task), unique_key="one")
    )
    fired = fire(diary.bench.db, seen, step, keyed, actor="planner")
    assert fired is not None and fired.jobs == {}
    occurrence = Occurrence.objects.using(diary.alias).get()
    assert (occurrence.outcome, occurrence.job_id) == ("skipped", holder)
    assert occurrence.reason == "the unique key is held by that job"


def blocked(diary: Diary, name: str, **fields: Any) -> tuple[Claim, int]:
    """A running job of a new schedule, and the one that waits for its end."""
    diary.schedule(name=name, interval_seconds=60, **fields)
    diary.turn(60)
    diary.round()
    (running,) = diary.bench.claim()
    diary.turn(60)
    diary.round()
    schedule_id = stored(diary).get(name=name).pk
    return running, Job.objects.using(diary.alias).get(schedule_id=schedule_id, status="blocked").pk


def test_a_blocked_job_waits_for_those_of_its_own_schedule_only(diary: Diary) -> None:
    _, other = blocked(diary, "other", overlap="queue_one")
    stored(diary).update(active=False)
    running, waiting = blocked(diary, "own", overlap="queue_one")
    assert attend(diary.bench.db).holds_jobs
    diary.bench.close(running)
    assert unblock(diary.bench.db) == 1
    assert (diary.bench.status(waiting), diary.bench.status(other)) == ("pending", "blocked")


def test_a_blocked_job_waits_for_the_retry_of_the_earlier_one(diary: Diary) -> None:
    running, waiting = blocked(diary, "s", overlap="queue_one")
    diary.bench.close(running, Status.RETRY_WAIT, delay_seconds=3600.0, failures=1)
    assert unblock(diary.bench.db) == 0
    assert diary.bench.status(waiting) == "blocked"


def test_blocked_jobs_that_must_wait_on_keep_no_later_one_waiting(diary: Diary) -> None:
    blocked(diary, "long", overlap="queue_one")
    stored(diary).update(active=False)
    running, waiting = blocked(diary, "short", overlap="queue_one")
    diary.bench.close(running)
    assert unblock(diary.bench.db, limit=1) == 1
    assert diary.bench.status(waiting) == "pending"


def test_an_unblocked_job_still_waits_for_its_jitter(diary: Diary) -> None:
    running, waiting = blocked(diary, "s", overlap="queue_one")
    diary.bench.close(running)
    diary.bench.db.execute("UPDATE jobs_job SET run_at = %(at)s", at=diary.now + timedelta(seconds=5))
    assert unblock(diary.bench.db) == 1
    assert diary.bench.status(waiting) == "scheduled"


def test_only_an_earlier_job_of_the_same_schedule_is_cancelled_and_asked_once(diary: Diary) -> None:
    blocked(diary, "patient", overlap="queue_one")
    stored(diary).update(active=False)
    running, waiting = blocked(diary, "s", overlap="cancel_previous")
    assert cancel_previous(diary.bench.db, actor="planner") == 1
    asked = Job.objects.using(diary.alias).filter(cancel_requested_at__isnull=False)
    assert list(asked.values_list("pk", flat=True)) == [running.job_id]
    assert cancel_previous(diary.bench.db, actor="planner") == 0
    diary.bench.close(running, Status.CANCELLED)
    assert cancel_previous(diary.bench.db, actor="planner") == 0
    assert unblock(diary.bench.db) == 1
    assert diary.bench.status(waiting) == "pending"
