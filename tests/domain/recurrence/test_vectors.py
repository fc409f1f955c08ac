from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron, Every
from jobs.domain.recurrence.catch_up import CatchUp, due_occurrences
from tests.domain.recurrence.vectors import VECTORS, at, parameters

FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")


def test_no_vector_is_left_out() -> None:
    counts = {group: len(VECTORS[group]) for group in ("vectors", "interval", "missed", "invalid")}
    assert counts == {"vectors": 123, "interval": 10, "missed": 8, "invalid": 42}


@pytest.mark.parametrize("vector", parameters("vectors"))
def test_cron_names_the_expected_instants(vector: dict[str, Any]) -> None:
    rule = Cron(vector["expression"], vector["zone"])
    expected = [at(text) for text in vector["expected"]]
    assert rule.upcoming(3, at(vector["after"])) == expected
    assert rule.latest(at(vector["after"]), expected[-1]) == expected[-1]
    assert rule.newest(5, at(vector["after"]), expected[-1]) == expected


@pytest.mark.parametrize("vector", parameters("interval"))
def test_an_interval_names_the_expected_instants(vector: dict[str, Any]) -> None:
    rule = Every(timedelta(seconds=vector["interval_seconds"]), at(vector["anchor"]))
    expected = [at(text) for text in vector["expected"]]
    assert rule.upcoming(3, at(vector["after"])) == expected
    assert rule.newest(5, at(vector["after"]), expected[-1]) == expected


@pytest.mark.parametrize("vector", parameters("missed"))
def test_a_downtime_misses_the_expected_instants(vector: dict[str, Any]) -> None:
    rule = Cron(vector["expression"], vector["zone"])
    last, now = at(vector["last"]), at(vector["now"])
    latest = at(vector["latest"]) if vector["latest"] else None
    assert rule.count(last, now, at_most=10_000) == vector["due_count"]
    assert rule.latest(last, now) == latest
    due = due_occurrences(rule, last, now, CatchUp.COALESCE)
    assert due.occurrences == ((latest,) if latest else ())
    assert due.reached == latest
    assert due.next_at == at(vector["next_after_now"])
    assert due.skipped == min(100, max(0, vector["due_count"] - 1))
    assert due.skipped_more == (vector["due_count"] > 101)


@pytest.mark.parametrize("vector", parameters("invalid"))
def test_what_is_no_rule_is_refused_by_an_error_that_names_the_field(vector: dict[str, Any]) -> None:
    with pytest.raises(InvalidRule) as caught:
        Cron(vector["expression"], "UTC")
    named = next((name for name in FIELDS if vector["reason"].startswith(f"{name}:")), "")
    assert str(caught.value).startswith(
        f"{named}:" if named else ("expression:", "day-of-month and day-of-week:", "day-of-week:")
    )
    assert "Traceback" not in str(caught.value)
    assert caught.value.part == "expression"
