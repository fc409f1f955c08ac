from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Every

ANCHOR = datetime(2026, 1, 1, 0, 0, 7, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)


def refused(part: str, *args: Any, **options: Any) -> None:
    with pytest.raises(InvalidRule) as caught:
        Every(*args, **options)
    assert caught.value.part == part
    assert str(caught.value).startswith(f"{part}: ")


def test_ten_years_later_it_has_not_drifted() -> None:
    found = Every(timedelta(seconds=90), ANCHOR).next_after(ANCHOR + timedelta(days=3_650, milliseconds=1))
    assert found == ANCHOR + timedelta(days=3_650, seconds=90)


def test_the_anchor_is_the_first_occurrence() -> None:
    rule = Every(MINUTE, ANCHOR)
    assert rule.next_after(ANCHOR - timedelta(days=9)) == ANCHOR
    assert rule.next_after(ANCHOR) == ANCHOR + MINUTE
    assert rule.latest(ANCHOR - MINUTE, ANCHOR - timedelta(microseconds=1)) is None
    assert rule.latest(ANCHOR - MINUTE, ANCHOR) == ANCHOR


def test_bounds_are_half_open_and_keep_the_phase() -> None:
    rule = Every(MINUTE, ANCHOR, start=ANCHOR + 2 * MINUTE, end=ANCHOR + 5 * MINUTE)
    expected = [ANCHOR + number * MINUTE for number in (2, 3, 4)]
    late = ANCHOR + timedelta(days=9)
    assert rule.upcoming(9, ANCHOR) == expected
    assert rule.newest(9, ANCHOR, late) == expected
    assert rule.newest(2, ANCHOR, late) == expected[1:]
    assert rule.latest(ANCHOR, late) == expected[-1]
    assert rule.count(ANCHOR, late, at_most=100) == 3
    assert rule.count(late, ANCHOR, at_most=100) == 0
    odd = Every(MINUTE, ANCHOR, start=ANCHOR + timedelta(seconds=61))
    assert odd.next_after(ANCHOR) == ANCHOR + 2 * MINUTE


def test_a_million_missed_occurrences_are_counted_by_arithmetic() -> None:
    rule = Every(timedelta(seconds=1), ANCHOR)
    assert rule.count(ANCHOR, ANCHOR + timedelta(days=36_500), at_most=10**10) == 36_500 * 86_400


def test_the_anchor_is_cut_to_the_second_and_kept_in_utc() -> None:
    there = ANCHOR.astimezone(timezone(timedelta(hours=2))).replace(microsecond=5)
    assert Every(MINUTE, there) == Every(MINUTE, ANCHOR)
    assert Every(MINUTE, there).anchor.tzinfo is timezone.utc


@pytest.mark.parametrize(
    "interval", [timedelta(0), timedelta(seconds=-5), timedelta(seconds=0.5), timedelta(seconds=90.5), 60, None]
)
def test_the_interval_is_whole_seconds(interval: Any) -> None:
    refused("interval", interval, ANCHOR)


def test_the_interval_is_at_most_366_days() -> None:
    assert Every(timedelta(days=366), ANCHOR)
    refused("interval", timedelta(days=366, seconds=1), ANCHOR)


def test_what_never_fires_is_refused() -> None:
    refused("end", MINUTE, ANCHOR, end=ANCHOR)
    refused("end", MINUTE, ANCHOR, start=ANCHOR + timedelta(seconds=1), end=ANCHOR + MINUTE)
    refused("anchor", MINUTE, ANCHOR.replace(tzinfo=None))
    refused("jitter", MINUTE, ANCHOR, jitter=MINUTE)


def test_the_end_of_the_calendar_is_no_error() -> None:
    last = datetime.max.replace(tzinfo=timezone.utc)
    rule = Every(timedelta(days=366), ANCHOR)
    assert rule.next_after(last) is None
    assert rule.latest(ANCHOR, last) is not None


def test_it_is_a_value_with_words() -> None:
    rule = Every(timedelta(minutes=15), ANCHOR, jitter=timedelta(seconds=30))
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert rule.describe() == "every 15 minutes, counted from 2026-01-01 00:00:07 UTC, delayed by up to 30 s"
    assert ANCHOR <= rule.run_at(ANCHOR, "a") < ANCHOR + timedelta(seconds=30)
