from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron
from jobs.domain.recurrence.wall_calendar import WallCalendar


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


JANUARY = at("2026-01-01 00:00")
DAILY = Cron("0 9 * * *", "UTC")


def refused(part: str, *args: Any, **options: Any) -> str:
    with pytest.raises(InvalidRule) as caught:
        Cron(*args, **options)
    assert caught.value.part == part
    return str(caught.value)


def test_the_next_is_strictly_after() -> None:
    assert DAILY.next_after(at("2026-01-01 08:59:59.999999")) == at("2026-01-01 09:00")
    assert DAILY.next_after(at("2026-01-01 09:00")) == at("2026-01-02 09:00")


def test_any_zone_of_the_question_will_do_but_a_naive_one() -> None:
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert DAILY.next_after(there) == at("2026-01-01 09:00")
    with pytest.raises(InvalidRule, match="no datetime with a time zone"):
        DAILY.next_after(datetime(2026, 1, 1))  # noqa: DTZ001


def test_bounds_are_half_open() -> None:
    rule = Cron("0 9 * * *", "UTC", start=at("2026-01-02 09:00"), end=at("2026-01-04 09:00"))
    assert rule.upcoming(9, JANUARY) == [at("2026-01-02 09:00"), at("2026-01-03 09:00")]
    assert rule.next_after(at("2026-01-03 09:00")) is None
    assert rule.latest(JANUARY, at("2030-01-01 00:00")) == at("2026-01-03 09:00")
    assert rule.latest(JANUARY, at("2026-01-02 08:00")) is None
    assert rule.newest(9, JANUARY, at("2030-01-01 00:00")) == rule.upcoming(9, JANUARY)
    assert rule.count(JANUARY, at("2030-01-01 00:00"), at_most=9) == 2


@pytest.mark.parametrize(
    "name", ["europe/berlin", "right/UTC", "localtime", "Factory", "posixrules", "America", "../x"]
)
def test_a_zone_must_be_one_of_the_database(name: str) -> None:
    assert refused("timezone", "* * * * *", name).startswith("timezone: ")


def test_a_misspelt_zone_is_told_the_right_one() -> None:
    assert "did you mean Europe/Berlin?" in refused("timezone", "* * * * *", "europe/berlin")
    assert "Europe/Berlin" in refused("timezone", "* * * * *", None)


def test_an_impossible_rule_is_refused_at_once() -> None:
    assert "never matches any date" in refused("expression", "0 0 31 2 *", "UTC")
    assert "clocks in America/New_York skip" in refused("expression", "* 2 * 3 0#2", "America/New_York")
    assert Cron("* 2 * 3 0#2", "UTC")
    assert Cron("0 2 * 3 0#2", "America/New_York").next_after(JANUARY) == at("2026-03-08 07:00")


def test_looking_for_times_that_are_always_skipped_ends_after_fifty_years(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    ask = WallCalendar.next_after

    def counted(calendar: WallCalendar, wall: datetime) -> datetime | None:
        asked.append(wall)
        return ask(calendar, wall)

    monkeypatch.setattr(WallCalendar, "next_after", counted)
    refused("expression", "* 2 * 3 0#2", "America/New_York")
    assert 40 < len(asked) < 60


def test_bounds_without_an_occurrence_between_them_are_refused() -> None:
    nine, ten = at("2026-01-01 09:00"), at("2026-01-01 10:00")
    assert Cron("0 9 * * *", "UTC", start=nine, end=ten)
    assert "no occurrence" in refused("end", "0 9 * * *", "UTC", start=nine + timedelta(seconds=1), end=ten)
    assert "after the start" in refused("end", "0 9 * * *", "UTC", start=ten, end=ten)
    refused("start", "0 9 * * *", "UTC", start="2026-01-01")


def test_jitter_delays_the_run_by_the_same_in_every_process_and_never_moves_the_occurrence() -> None:
    rule = Cron("*/5 * * * *", "UTC", jitter=timedelta(minutes=4))
    occurrences = rule.upcoming(200, JANUARY)
    assert occurrences == Cron("*/5 * * * *", "UTC").upcoming(200, JANUARY)
    delays = [rule.run_at(one, "schedule:7") - one for one in occurrences]
    assert all(timedelta(0) <= delay < timedelta(minutes=4) for delay in delays)
    assert min(delays) < timedelta(seconds=24) and max(delays) > timedelta(seconds=216)
    assert delays[0] == timedelta(seconds=239, microseconds=375102)  # written down: another process must agree
    assert delays != [rule.run_at(one, "schedule:8") - one for one in occurrences]
    assert DAILY.run_at(JANUARY, "schedule:7") == JANUARY


@pytest.mark.parametrize("jitter", [timedelta(minutes=5), timedelta(seconds=-1), timedelta(seconds=1.5), 30, None])
def test_jitter_must_be_whole_seconds_and_shorter_than_the_spacing(jitter: Any) -> None:
    assert refused("jitter", "*/5 * * * *", "UTC", jitter=jitter).startswith("jitter: ")


def test_the_ends_of_the_calendar_are_no_error() -> None:
    assert DAILY.next_after(datetime.max.replace(tzinfo=timezone.utc)) is None
    assert DAILY.next_after(datetime.min.replace(tzinfo=timezone.utc)) == at("1970-01-01 09:00")
    last = datetime.max.replace(tzinfo=timezone.utc)
    assert DAILY.latest(JANUARY, at("8999-01-01 10:00")) == at("8999-01-01 09:00")
    assert DAILY.latest(last, last) is None


def test_a_rule_is_a_value() -> None:
    rule = Cron("0 9 * * mon-fri", "Europe/Berlin", start=JANUARY)
    same = Cron("0 9 * * mon-fri", "Europe/Berlin", start=JANUARY.astimezone(timezone(timedelta(hours=1))))
    assert rule == same and hash(rule) == hash(same)
    assert rule != Cron("0 9 * * mon-fri", "Europe/Paris", start=JANUARY)
    for twin in (pickle.loads(pickle.dumps(rule)), copy.deepcopy(rule)):
        assert twin == rule and twin.next_after(JANUARY) == rule.next_after(JANUARY)


def test_threads_may_share_a_rule() -> None:
    rule = Cron("*/7 * * * *", "Europe/Berlin")
    starts = [JANUARY + number * timedelta(hours=5) for number in range(40)]
    expected = [rule.upcoming(20, start) for start in starts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda start: rule.upcoming(20, start), starts)) == expected


def test_it_describes_itself() -> None:
    assert Cron("0 7 * * mon-fri", "Europe/Berlin").describe() == "at 07:00, Monday to Friday, Europe/Berlin time"
    assert Cron("@hourly", "UTC", jitter=timedelta(seconds=30)).describe() == (
        "at minute 0 of every hour, UTC, delayed by up to 30 s"
    )


def test_only_rules_of_zones_that_change_their_clocks_carry_a_hint() -> None:
    assert Cron("0 */6 * * *", "Europe/Berlin").hint()
    assert not Cron("0 */6 * * *", "Asia/Tokyo").hint()
    assert not Cron("0 6 * * *", "Europe/Berlin").hint()


@pytest.mark.parametrize(
    ("zone", "occurrence", "hours"),
    [
        ("America/New_York", "2025-03-09 07:00", 1),
        ("America/New_York", "2025-03-10 03:59", 1),
        ("America/New_York", "2025-03-10 04:00", 0),
        ("America/New_York", "2025-11-02 05:30", -1),
        ("Australia/Lord_Howe", "2025-10-04 16:00", 0.5),
        ("America/Sao_Paulo", "2018-11-04 03:00", 1),
        ("America/Sao_Paulo", "2018-11-04 02:59", 0),
        ("America/Nuuk", "2024-10-27 00:30", -1),
        ("UTC", "2025-03-09 07:00", 0),
    ],
)
def test_it_knows_the_days_on_which_clocks_change(zone: str, occurrence: str, hours: float) -> None:
    assert Cron("* * * * *", zone).clock_change(at(occurrence)) == timedelta(hours=hours)
