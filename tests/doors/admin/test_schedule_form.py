"""The form of a schedule: complaints at their fields, and nothing moved that is not the form's."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs import Task
from jobs.domain.factories import Factory, factories
from jobs.models import Schedule
from jobs.recurring import pause, schedule_recurring
from tests.support.schedule_pages import ADD, as_shown, given, page_of, said, stored


def test_a_schedule_is_added_with_its_next_instant(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    options = '{"queue": "default", "priority": -3}'
    response = admin_client.post(ADD, given(kwargs='{"copy_to": "ana"}', options=options))
    assert response.status_code == 302, response.context["adminform"].form.errors
    row = stored(database)
    assert row.arguments == {"args": [42], "kwargs": {"copy_to": "ana"}}
    assert row.options == {"queue": "default", "priority": -3}
    assert (row.expression, row.timezone, row.interval_seconds) == ("0 7 * * mon-fri", "Europe/Berlin", None)
    assert row.next_run_at is not None and row.next_run_at > datetime.now(timezone.utc)
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_a_fixed_rate_is_counted_from_its_start(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    rate = {"expression": "", "timezone": "", "interval_seconds": "900"}
    admin_client.post(ADD, given(**rate, start_at_0="2100-01-01", start_at_1="12:00:00"))
    start = datetime(2100, 1, 1, 12, tzinfo=timezone.utc)
    row = stored(database)
    assert (row.anchor_at, row.start_at, row.next_run_at, row.timezone) == (start, start, start, "UTC")


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"expression": ""}, "expression", "Give a cron expression, or a number of seconds."),
        ({"expression": "0 25 * * *"}, "expression", "hour"),
        ({"expression": "0 0 31 2 *"}, "expression", "never matches"),
        ({"interval_seconds": "60"}, "expression", "not both"),
        ({"timezone": "Europe/Berln"}, "timezone", "did you mean Europe/Berlin"),
        ({"expression": "", "interval_seconds": "99999999"}, "interval_seconds", "366 days"),
        ({"expression": "", "interval_seconds": "abc"}, "interval_seconds", "whole number"),
        ({"expression": "x" * 256}, "expression", "255"),
        ({"start_at_0": "soon", "start_at_1": ""}, "start_at", "valid"),
        ({"timezone": "x" * 65}, "timezone", "64"),
        ({"jitter_seconds": "86400"}, "jitter_seconds", "shorter than"),
        (
            {"end_at_0": "2020-01-01", "end_at_1": "0:00", "start_at_0": "2021-01-01", "start_at_1": "0:00"},
            "end_at",
            "",
        ),
        ({"task": "os.system"}, "task", "Select a valid choice"),
        ({"factory": "nobody"}, "factory", "Select a valid choice"),
        ({"args": "[]"}, "args", "missing a required argument: 'order'"),
        ({"args": "{}"}, "args", "Give a list"),
        ({"kwargs": '{"to": 1}'}, "kwargs", "unexpected keyword argument 'to'"),
        ({"kwargs": "["}, "kwargs", "This is not JSON"),
        ({"args": '["\\u0000"]'}, "args", "args[0]"),
        ({"options": '{"prioritty": 1}'}, "options", "did you mean priority"),
        ({"options": '{"queue": "nobody-declared-it"}'}, "options", "is not declared"),
        ({"options": '{"run_at": "2027-01-01"}'}, "options", "its rule says when"),
        ({"options": '{"meta": "\\ud800"}'}, "options", "options.meta"),
        ({"name": "a\tb"}, "name", "control character"),
        ({"name": ""}, "name", "required"),
        ({"overlap": "nonsense"}, "overlap", "Select a valid choice"),
        ({"catch_up_cap": "101"}, "catch_up_cap", "100"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    database: str,
    admin_client: Client,
    receipt_task: Task[Any, Any],
    fields: dict[str, str],
    field: str,
    message: str,
) -> None:
    response = admin_client.post(ADD, given(**fields))
    assert response.status_code == 200, "it was stored"
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert len(errors[field]) == 1
    assert message in errors[field][0]
    assert not Schedule.objects.using(database).exists()


def test_a_name_is_taken_once_in_the_database_of_the_jobs(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    response = admin_client.post(ADD, given())
    assert dict(response.context["adminform"].form.errors) == {"name": ["There is a schedule of that name already."]}


def test_a_factory_gives_the_arguments_and_leaves_no_room_for_others(
    database: str, admin_client: Client, receipt_task: Task[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factories, "_factories", {})
    factories.add(Factory("tests.orders", "tests.send_receipt", lambda at: ([1], {})))
    factories.add(Factory("tests.others", "tests.other", lambda at: ([1], {})))
    errors = admin_client.post(ADD, given(factory="tests.orders")).context["adminform"].form.errors
    assert dict(errors) == {"args": ["the factory gives the arguments: leave them empty"]}
    errors = admin_client.post(ADD, given(factory="tests.others", args="")).context["adminform"].form.errors
    assert list(errors) == ["factory"]
    assert admin_client.post(ADD, given(factory="tests.orders", args="")).status_code == 302
    assert stored(database).factory == "tests.orders"


def test_an_edited_rule_has_a_new_next_instant(database: str, admin_client: Client, nightly: Schedule) -> None:
    response = admin_client.post(page_of(nightly), {**as_shown(admin_client, nightly), "expression": "0 8 * * sun"})
    assert response.status_code == 302, response.context["adminform"].form.errors
    row = stored(database)
    assert row.next_run_at != nightly.next_run_at
    assert row.next_run_at is not None and row.next_run_at.weekday() == 6


def test_a_stale_form_moves_neither_the_next_nor_the_last_instant(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    form = as_shown(admin_client, nightly)
    assert nightly.next_run_at is not None
    fired = {"last_occurrence_at": nightly.next_run_at, "next_run_at": nightly.next_run_at + timedelta(days=7)}
    Schedule.objects.using(database).update(**fired, missed=3)
    pause("nightly", until=datetime(2100, 1, 1, tzinfo=timezone.utc), actor="ana")
    Schedule.objects.using(database).update(next_run_at=fired["next_run_at"], paused_until=None)
    assert admin_client.post(page_of(nightly), {**form, "overlap": "allow"}).status_code == 302
    row = stored(database)
    assert (row.overlap, row.missed, row.paused_by) == ("allow", 3, "ana")
    assert {name: getattr(row, name) for name in fired} == fired


def test_saving_unchanged_changes_nothing(database: str, admin_client: Client, receipt_task: Task[Any, Any]) -> None:
    start = datetime(2100, 1, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)
    schedule_recurring(receipt_task, every=90, start=start, name="nightly", args=[42], kwargs={"copy_to": "ä"})
    before = Schedule.objects.using(database).values().get()
    assert admin_client.post(page_of(stored(database)), as_shown(admin_client, stored(database))).status_code == 302
    assert Schedule.objects.using(database).values().get() == before


def test_a_pause_that_came_before_the_save_is_kept(database: str, admin_client: Client, nightly: Schedule) -> None:
    form = as_shown(admin_client, nightly)
    pause("nightly", actor="ana", reason="stock-taking")
    admin_client.post(page_of(nightly), {**form, "expression": "0 9 * * *"})
    row = stored(database)
    assert (row.active, row.paused_by, row.reason, row.next_run_at) == (False, "ana", "stock-taking", None)


def test_the_row_is_locked_from_reading_it_to_writing_it(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    form = as_shown(admin_client, nightly)
    with CaptureQueriesContext(connections[database]) as captured:
        assert admin_client.post(page_of(nightly), {**form, "overlap": "allow"}).status_code == 302
    locking = [one["sql"] for one in captured if one["sql"].endswith("FOR UPDATE")]
    assert len(locking) == (1 if database == "postgres" else 0)


def test_a_refused_form_still_shows_the_schedule_as_it_is(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    form = as_shown(admin_client, nightly)
    response = admin_client.post(page_of(nightly), {**form, "expression": "0 25 * * *"})
    assert response.status_code == 200
    assert "at 07:00, Monday to Friday, Europe/Berlin time" in response.content.decode()
    assert len(response.context["instants"]) == 5


def test_a_rule_that_loses_runs_when_clocks_change_is_stored_with_a_word_on_it(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    response = admin_client.post(ADD, given(expression="0 */6 * * *"))
    assert any("write 0 0,6,12,18 * * *" in message for message in said(response))


def test_an_instant_that_the_sites_clock_shows_twice_stays_as_it_is(
    database: str, admin_client: Client, receipt_task: Task[Any, Any], settings: Settings
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    second_pass = datetime(2099, 10, 25, 1, 30, tzinfo=timezone.utc)
    schedule_recurring(receipt_task, every=90, start=second_pass, name="nightly", args=[42])
    before = stored(database)
    form = {**as_shown(admin_client, before), "overlap": "allow"}
    response = admin_client.post(page_of(before), form)
    assert response.status_code == 302, response.context["adminform"].form.errors
    after = stored(database)
    assert (after.start_at, after.next_run_at, after.overlap) == (second_pass, second_pass, "allow")
    refused = admin_client.post(page_of(before), {**form, "start_at_1": "02:45"})
    assert list(refused.context["adminform"].form.errors) == ["start_at"]
