"""`python manage.py schedules`: the table, the preview, the sync."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from pytest_django import Settings

from jobs import Task, cron, discovery
from jobs.domain.registry import registry
from jobs.models import Schedule
from jobs.recurring import schedule_recurring
from tests.support import tasks
from tests.support.schedules import Diary

NOW = datetime.now(timezone.utc)


def schedules(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("schedules", *arguments, stdout=out)
    return out.getvalue().splitlines()


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        schedules(*arguments)
    assert refused.value.returncode == 1
    message = str(refused.value)
    assert "\n" not in message
    return message


def expression(database: str) -> str:
    found: str = Schedule.objects.using(database).get(name="tests.report").expression
    return found


@pytest.fixture
def report() -> Iterator[None]:
    def write_report() -> None: ...

    rule = cron("0 7 * * mon-fri", timezone="Europe/Berlin")
    Task(write_report, name="tests.report", schedule=rule)
    yield
    registry.remove("tests.report")


def test_an_empty_table_says_so(database: str) -> None:
    assert schedules() == ["There are no schedules."]


def test_the_table_names_rule_zone_instants_and_state(database: str) -> None:
    schedule_recurring(tasks.add, cron="0 7 * * mon-fri", timezone="Asia/Tokyo", name="morning", args=[1])
    schedule_recurring(tasks.add, every=900, name="quarter", args=[1])
    head, morning, quarter = schedules()
    assert head.split() == ["NAME", "RULE", "ZONE", "LAST", "NEXT", "STATE"]
    assert "at 07:00, Monday to Friday, Asia/Tokyo time" in morning
    assert "22:00 UTC" in morning and "07:00 JST)" in morning
    assert morning.endswith("active") and "never" in morning
    assert "every 15 minutes" in quarter and "fixed rate" in quarter
    assert morning.index("never") == head.index("LAST") == quarter.index("never")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "active"),
        ({"active": False, "paused_by": "ana", "reason": "stock-taking"}, "paused by ana (stock-taking)"),
        (
            {"paused_until": datetime(2999, 1, 1, tzinfo=timezone.utc), "paused_by": "ana", "reason": "x"},
            "paused until Tue 2999-01-01 00:00 UTC by ana (x)",
        ),
        ({"retired": True, "declared": True, "active": False}, "not declared any more"),
        ({"is_exhausted": True}, "finished"),
        ({"problem": "no task is named 'x'", "problem_since": NOW}, "problem: no task is named 'x'"),
        ({"skip_next": True, "skipped_by": "ben"}, "active (the next one is skipped by ben)"),
        ({"next_run_at": None}, "active (not planned yet)"),
        ({"next_run_at": NOW - timedelta(hours=1)}, "overdue"),
    ],
)
def test_each_state_has_its_words(database: str, fields: dict[str, Any], state: str) -> None:
    schedule_recurring(tasks.add, every=900, name="s", args=[1])
    Schedule.objects.using(database).update(**fields)
    assert schedules()[1].endswith(f"  {state}")


def test_the_sites_zone_comes_first(database: str, settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    schedule_recurring(tasks.add, cron="0 9 1 7 *", timezone="Asia/Tokyo", name="s", args=[1])
    schedule_recurring(tasks.add, cron="0 9 1 7 *", timezone="Europe/Berlin", name="t", args=[1])
    assert "02:00 CEST (09:00 JST)" in schedules()[1]
    assert "09:00 CEST  " in schedules()[2]


def test_a_hostile_name_moves_no_cursor(database: str) -> None:
    diary = Diary(database)
    diary.schedule(name="\x1b[2Jred\n\u202e", interval_seconds=60)
    lines = schedules()
    assert len(lines) == 2
    assert lines[1].startswith("\\u001b[2Jred\\u000a\\u202e")


def test_preview_marks_the_nights_on_which_clocks_change(db: None) -> None:
    asked = ("preview", "30 2 * * *", "--timezone", "America/New_York", "--count", "3")
    assert schedules(*asked, "--after", "2027-03-13") == [
        "at 02:30, every day, America/New_York time",
        "Sat 2027-03-13 02:30 EST  Sat 2027-03-13 07:30 UTC",
        "Sun 2027-03-14 03:00 EDT  Sun 2027-03-14 07:00 UTC  clocks go forward by 1 h on that day",
        "Mon 2027-03-15 02:30 EDT  Mon 2027-03-15 06:30 UTC",
    ]
    assert "go back by 1 h" in schedules(*asked, "--after", "2027-11-07T02:30")[1]
    assert len(schedules("preview", "@hourly")) == 6


def test_preview_says_what_an_open_rule_does_when_clocks_change(db: None) -> None:
    said = schedules("preview", "0 */6 * * *", "--timezone", "Europe/Berlin")
    assert "write 0 0,6,12,18 * * *" in said[1]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["0 25 * * *"], "hour"),
        (["0 0 31 2 *"], "never matches"),
        (["0 0 * * *", "--timezone", "Europe/Berln"], "did you mean Europe/Berlin"),
        (["\x1b[2J"], "expression"),
    ],
)
def test_preview_refuses_a_bad_rule_in_one_line(db: None, given: list[str], named: str) -> None:
    assert named in refusal("preview", *given)


@pytest.mark.parametrize(
    "given", [["--count", "0"], ["--count", "1001"], ["--after", "soon"], ["--after", "0001-01-01"]]
)
def test_preview_refuses_options_that_it_cannot_use(db: None, given: list[str]) -> None:
    with pytest.raises(CommandError, match="give a "):
        schedules("preview", "@daily", *given)


def test_sync_stores_what_is_declared(database: str, report: None) -> None:
    assert schedules("sync") == ["The schedules are as this code declares them."]
    row = Schedule.objects.using(database).get(name="tests.report")
    assert row.declared and row.next_run_at


def test_sync_of_an_older_release_wants_force(database: str, report: None) -> None:
    schedules("sync")
    registry.remove("tests.report")
    Task(lambda: None, name="tests.report", schedule=cron("0 8 * * *", timezone="UTC"))
    schedules("sync")
    registry.remove("tests.report")
    Task(lambda: None, name="tests.report", schedule=cron("0 7 * * mon-fri", timezone="Europe/Berlin"))
    assert "give --force" in refusal("sync")
    assert expression(database) == "0 8 * * *"
    schedules("sync", "--force")
    assert expression(database) == "0 7 * * mon-fri"


def test_sync_says_why_it_changed_nothing(database: str, report: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(discovery.failed, "shop.tasks", "ImportError: no")
    assert refusal("sync") == "nothing was changed: shop.tasks cannot be imported"


def test_a_database_that_cannot_be_used_is_one_line(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(alias: str) -> datetime:
        raise OperationalError("connection refused\nIs the server running?")

    monkeypatch.setattr("jobs.management.commands.schedules.database_now", away)
    assert refusal() == f"database {database!r} cannot be used: connection refused"
