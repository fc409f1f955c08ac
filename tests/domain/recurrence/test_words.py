from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from jobs.domain.recurrence.grammar import read_expression
from jobs.domain.recurrence.words import clock_hint, cron_in_words, interval_in_words, modifiers_in_words

NEW_YEAR = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("@hourly", "at minute 0 of every hour"),
        ("0 */2 * * *", "at minute 0 of every 2nd hour, every day"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00, every day"),
        ("*/20 8-18 * * *", "every 20 minutes in the hours 8 to 18, every day"),
        ("* 2 * * *", "every minute in the hour 2, every day"),
        ("0 9-17 * * *", "at minute 0 of the hours 9 to 17, every day"),
        ("0 7 * * mon-fri", "at 07:00, Monday to Friday"),
        ("0 7 * * sun", "at 07:00, every Sunday"),
        ("0 7 * * 6,7", "at 07:00, Saturday and Sunday"),
        ("0 12 * * fri#2", "at 12:00, on the second Friday of the month"),
        ("0 12 * * L5,1#1", "at 12:00, on the last Friday and the first Monday of the month"),
        ("0 0 1 1 *", "at 00:00, on 1 January"),
        ("0 0 1,15 jan,jul *", "at 00:00, on days 1 and 15 of the month, in January and July"),
        ("0 0 15,L * *", "at 00:00, on day 15 of the month and on the last day of the month"),
        ("0 9 15W * *", "at 09:00, on the weekday nearest to day 15"),
        ("0 0 13 * 5", "at 00:00, on day 13 of the month and also every Friday"),
    ],
)
def test_cron_reads_as_people_say_it(expression: str, words: str) -> None:
    assert cron_in_words(read_expression(expression), "Europe/Berlin") == f"{words}, Europe/Berlin time"


def test_utc_is_not_called_a_time_of_utc() -> None:
    assert cron_in_words(read_expression("* * * * *"), "UTC") == "every minute, UTC"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "second"), (90, "90 seconds"), (60, "minute"), (900, "15 minutes"), (86_400, "24 hours"), (604_800, "7 days")],
)
def test_an_interval_reads_in_its_largest_unit_but_a_day_is_24_hours(seconds: int, words: str) -> None:
    said = interval_in_words(timedelta(seconds=seconds), NEW_YEAR)
    assert said == f"every {words}, counted from 2026-01-01 00:00:00 UTC"


def test_bounds_and_jitter_are_said_when_there_are_any() -> None:
    assert modifiers_in_words(None, None, timedelta(0)) == ""
    assert modifiers_in_words(NEW_YEAR, NEW_YEAR + timedelta(days=1), timedelta(minutes=5)) == (
        ", from 2026-01-01 00:00:00 UTC on, until before 2026-01-02 00:00:00 UTC, delayed by up to 300 s"
    )


@pytest.mark.parametrize(
    ("expression", "once"),
    [
        ("0 */6 * * *", "0 0,6,12,18 * * *"),
        ("*/30 2 * * mon", "0,30 2 * * 1"),
        ("* 2 1 1 *", "0-59 2 1 1 *"),
    ],
)
def test_a_rule_that_loses_runs_when_clocks_change_gets_a_hint_at_one_that_does_not(expression: str, once: str) -> None:
    assert clock_hint(read_expression(expression)).endswith(f"write {once}")
    assert not read_expression(once).is_open


@pytest.mark.parametrize("expression", ["*/15 * * * *", "0 * * * *", "0 2 * * *", "0 0-23 * * *"])
def test_other_rules_get_no_hint(expression: str) -> None:
    assert clock_hint(read_expression(expression)) == ""
