from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.domain.errors import InvalidOption
from jobs.domain.recurrence import Cron, Every
from jobs.domain.recurrence.catch_up import CatchUp, Due, due_occurrences

NINE = datetime(2026, 1, 1, 9, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
HOURLY = Cron("0 * * * *", "UTC")
POLICIES = list(CatchUp)


@pytest.mark.parametrize("catch_up", POLICIES)
def test_nothing_is_due_before_its_instant(catch_up: CatchUp) -> None:
    due = due_occurrences(HOURLY, NINE, NINE + HOUR - SECOND, catch_up)
    assert due == Due((), 0, False, None, NINE + HOUR)


@pytest.mark.parametrize("catch_up", POLICIES)
@pytest.mark.parametrize("late", [timedelta(0), 60 * SECOND])
def test_an_occurrence_that_is_hardly_late_fires_under_every_policy(catch_up: CatchUp, late: timedelta) -> None:
    due = due_occurrences(HOURLY, NINE, NINE + HOUR + late, catch_up)
    assert due == Due((NINE + HOUR,), 0, False, NINE + HOUR, NINE + 2 * HOUR)


@pytest.mark.parametrize(
    ("catch_up", "hours", "skipped"),
    [(CatchUp.COALESCE, (5,), 4), (CatchUp.SKIP, (), 5), (CatchUp.ALL, (3, 4, 5), 2)],
)
def test_after_a_downtime_the_policy_decides(catch_up: CatchUp, hours: tuple[int, ...], skipped: int) -> None:
    due = due_occurrences(HOURLY, NINE, NINE + 5.5 * HOUR, catch_up, cap=3)
    assert due == Due(tuple(NINE + hour * HOUR for hour in hours), skipped, False, NINE + 5 * HOUR, NINE + 6 * HOUR)


def test_skip_makes_the_newest_if_it_is_hardly_late() -> None:
    due = due_occurrences(HOURLY, NINE, NINE + 5 * HOUR + 61 * SECOND, CatchUp.SKIP, grace=61 * SECOND)
    assert due.occurrences == (NINE + 5 * HOUR,)
    assert due.skipped == 4


@pytest.mark.parametrize("rule", [HOURLY, Every(HOUR, NINE)])
@pytest.mark.parametrize("hours", [100, 101, 102, 50_000])
def test_what_was_skipped_is_counted_up_to_a_hundred(rule: Cron | Every, hours: int) -> None:
    due = due_occurrences(rule, NINE, NINE + hours * HOUR)
    assert due.skipped == min(100, hours - 1)
    assert due.skipped_text == (str(hours - 1) if hours <= 101 else "100+")


def test_all_makes_a_hundred_at_most() -> None:
    due = due_occurrences(HOURLY, NINE, NINE + 300 * HOUR, CatchUp.ALL, cap=100)
    assert due.occurrences == tuple(NINE + hour * HOUR for hour in range(201, 301))
    assert due.skipped_text == "100+"
    for cap in (0, 101):
        with pytest.raises(InvalidOption):
            due_occurrences(HOURLY, NINE, NINE, CatchUp.ALL, cap=cap)


def test_the_instant_a_schedule_remembers_is_due_though_its_rule_names_it_no_longer() -> None:
    half_past = NINE + HOUR / 2
    assert due_occurrences(HOURLY, NINE, NINE + HOUR - SECOND, planned=half_past).occurrences == (half_past,)
    due = due_occurrences(HOURLY, NINE, NINE + 2 * HOUR, CatchUp.ALL, planned=half_past)
    assert due.occurrences == (half_past, NINE + HOUR, NINE + 2 * HOUR)
    coalesced = due_occurrences(HOURLY, NINE, NINE + 2 * HOUR, planned=half_past)
    assert coalesced == Due((NINE + 2 * HOUR,), 2, False, NINE + 2 * HOUR, NINE + 3 * HOUR)
    newest = due_occurrences(HOURLY, NINE, NINE + 2 * HOUR, CatchUp.ALL, cap=2, planned=half_past)
    assert (newest.occurrences, newest.skipped) == ((NINE + HOUR, NINE + 2 * HOUR), 1)


def test_a_pause_leaves_nothing_to_catch_up() -> None:
    resumed_for = NINE + 50 * HOUR
    waiting = due_occurrences(HOURLY, NINE, resumed_for - SECOND, CatchUp.ALL, planned=resumed_for)
    assert waiting == Due((), 0, False, None, resumed_for)
    due = due_occurrences(HOURLY, NINE, resumed_for, CatchUp.ALL, planned=resumed_for)
    assert due == Due((resumed_for,), 0, False, resumed_for, resumed_for + HOUR)


@pytest.mark.parametrize("catch_up", POLICIES)
@pytest.mark.parametrize("back", [HOUR, 24 * HOUR])
def test_a_clock_that_steps_back_repeats_nothing(catch_up: CatchUp, back: timedelta) -> None:
    for planned in (None, NINE, NINE + HOUR):
        due = due_occurrences(HOURLY, NINE, NINE - back, catch_up, planned=planned)
        assert due == Due((), 0, False, None, NINE + HOUR)


def test_the_last_occurrence_before_the_end_leaves_no_next() -> None:
    rule = Cron("0 * * * *", "UTC", end=NINE + 3 * HOUR)
    due = due_occurrences(rule, NINE, NINE + 9 * HOUR)
    assert due == Due((NINE + 2 * HOUR,), 1, False, NINE + 2 * HOUR, None)


@pytest.mark.parametrize("catch_up", POLICIES)
def test_one_look_or_many_reach_the_same_instant(catch_up: CatchUp) -> None:
    rule = Cron("*/20 * * * *", "America/New_York")
    last = at = datetime(2026, 11, 1, 3, tzinfo=timezone.utc)
    made: list[datetime] = []
    for _ in range(40):
        at += timedelta(minutes=13)
        due = due_occurrences(rule, last, at, catch_up, grace=timedelta(minutes=20))
        made += due.occurrences
        last = due.reached or last
    assert made == rule.newest(1_000, datetime(2026, 11, 1, 3, tzinfo=timezone.utc), at)
