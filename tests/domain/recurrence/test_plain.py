from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron, Every, PlainRule, Rule, rule_from, to_plain

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
BOUNDS: dict[str, Any] = {"start": START, "end": START + timedelta(days=400), "jitter": timedelta(seconds=30)}


@pytest.mark.parametrize(
    "rule",
    [
        Cron(" 0 9  * * MON-fri", "Europe/Berlin"),
        Cron("@daily", "UTC", **BOUNDS),
        Every(timedelta(seconds=90), START),
        Every(timedelta(days=366), START, **BOUNDS),
    ],
)
def test_a_rule_comes_back_from_its_columns_as_it_was_typed(rule: Rule) -> None:
    assert rule_from(to_plain(rule)) == rule


def test_each_value_has_its_own_column() -> None:
    assert to_plain(Cron("@daily", "UTC", **BOUNDS)) == PlainRule(
        expression="@daily",
        timezone="UTC",
        start_at=START,
        end_at=START + timedelta(days=400),
        jitter_seconds=30,
    )
    assert to_plain(Every(timedelta(seconds=90), START)) == PlainRule(interval_seconds=90, anchor_at=START)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"expression": "0 0 31 2 *"}, "expression"),
        ({"expression": ""}, "expression"),
        ({"timezone": "Nowhere"}, "timezone"),
        ({"interval_seconds": 5}, "expression"),
        ({"expression": "", "interval_seconds": 5}, "anchor"),
        ({"expression": "", "interval_seconds": 10**20, "anchor_at": START}, "interval"),
        ({"expression": "", "interval_seconds": 0, "anchor_at": START}, "interval"),
        ({"expression": "", "anchor_at": START}, "interval"),
        ({"jitter_seconds": -1}, "jitter"),
        ({"jitter_seconds": None}, "jitter"),
        ({"end_at": START, "start_at": START}, "end"),
    ],
)
def test_columns_that_make_no_rule_say_which(changes: dict[str, Any], part: str) -> None:
    plain = dataclasses.replace(PlainRule(expression="0 9 * * *", timezone="UTC"), **changes)
    with pytest.raises(InvalidRule) as caught:
        rule_from(plain)
    assert caught.value.part == part


def test_jitter_is_no_part_of_the_timing() -> None:
    calm, restless = Cron("@daily", "UTC"), Cron("@daily", "UTC", jitter=timedelta(seconds=30))
    assert to_plain(calm).timing == to_plain(restless).timing
    assert to_plain(calm).timing != to_plain(Cron("@daily", "UTC", end=START)).timing
