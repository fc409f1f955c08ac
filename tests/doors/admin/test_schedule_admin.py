"""Schedules in the admin: the list, the page, and who may do what."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs import Task
from jobs.models import Job, Occurrence, Schedule
from jobs.recurring import pause, schedule_recurring
from tests.doors.admin.conftest import Login
from tests.support import tasks
from tests.support.schedule_pages import ADD, LIST, given, page_of, stored, verb
from tests.support.schedules import Diary

HOSTILE = '<script>alert("1")</script>'


def test_the_page_shows_the_next_instants_by_both_clocks_and_marks_dst_nights(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    start = datetime(2100, 3, 27, tzinfo=timezone.utc)
    berlin = "Europe/Berlin"
    schedule_recurring(receipt_task, cron="30 2 * * *", timezone=berlin, start=start, name="nightly", args=[42])
    response = admin_client.get(page_of(stored(database)))
    ahead = response.context["instants"]
    assert len(ahead) == 5
    assert ahead[0].at == stored(database).next_run_at
    assert (ahead[0].here, ahead[0].there) == ("Sat 2100-03-27 01:30 UTC", "Sat 2100-03-27 02:30 CET")
    text = response.content.decode()
    assert "Sat 2100-03-27 01:30 UTC" in text and "Sat 2100-03-27 02:30 CET" in text


def test_a_paused_one_shows_what_comes_after_its_pause(database: str, admin_client: Client, nightly: Schedule) -> None:
    pause("nightly", until=datetime(2100, 1, 1, tzinfo=timezone.utc))
    first = admin_client.get(page_of(nightly)).context["instants"][0]
    assert first.there == "Fri 2100-01-01 07:00 CET"
    pause("nightly")
    assert "None while it is paused." in admin_client.get(page_of(nightly)).content.decode()


def test_a_night_on_which_clocks_change_is_marked(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    # The last Sunday of every March: whenever this test runs, its next instant is such a night.
    schedule_recurring(receipt_task, cron="30 2 * mar l0", timezone="Europe/Berlin", name="nightly", args=[42])
    assert "clocks go forward by 1 h on that day" in admin_client.get(page_of(stored(database))).content.decode()


def test_the_page_shows_what_became_of_the_last_instants(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    at = datetime(2027, 1, 1, 7, tzinfo=timezone.utc)
    Occurrence.objects.using(database).bulk_create(
        Occurrence(schedule=nightly, planned_at=at + timedelta(days=n), outcome="skipped", reason=f"reason-{n}")
        for n in range(25)
    )
    Occurrence.objects.using(database).create(
        schedule=nightly, planned_at=at + timedelta(days=99), outcome="made", job_id=1234567, missed=4
    )
    text = admin_client.get(page_of(nightly)).content.decode()
    assert '<a href="/admin/jobs/job/1234567/change/">#1234567</a>' in text
    assert "Skipped: reason-24" in text and "reason-6<" in text
    assert "reason-5<" not in text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"active": False, "paused_by": "ana", "reason": "move"}, "It is paused by ana (move)."),
        ({"active": False}, "It is paused."),
        ({"problem": "no task is named x", "next_run_at": None}, "no task is named x. It does not fire until"),
        ({"problem": "the factory raised"}, "the factory raised. It goes on"),
        ({"is_exhausted": True, "next_run_at": None}, "It is finished"),
        ({"retired": True, "declared": True}, "The code declares it no longer"),
        ({"expression": "99 * * * *"}, "minute"),
    ],
)
def test_what_keeps_it_from_firing_is_said_at_the_top(
    database: str, admin_client: Client, nightly: Schedule, fields: dict[str, Any], sentence: str
) -> None:
    Schedule.objects.using(database).update(**fields)
    text = admin_client.get(page_of(nightly)).content.decode()
    assert sentence in text.partition('id="jobs-instants"')[0]


def test_what_the_code_declares_can_be_paused_and_run_but_not_edited(
    database: str, admin_client: Client, declared: Schedule
) -> None:
    text = admin_client.get(page_of(declared)).content.decode()
    assert "It is declared in code" in text
    assert 'name="_save"' not in text and 'name="expression"' not in text
    assert "today" in text
    assert admin_client.post(page_of(declared), given(name="tests.report")).status_code == 403
    assert admin_client.post(f"{LIST}{declared.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(verb(declared, "pause"))
    assert stored(database, "tests.report").active is False
    admin_client.post(verb(declared, "run"))
    assert Job.objects.using(database).count() == 1
    row = Schedule.objects.using(database).filter(pk=declared.pk)
    row.update(retired=True)
    assert admin_client.post(f"{LIST}{declared.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not row.exists()


def test_deleting_keeps_the_jobs(database: str, admin_client: Client, nightly: Schedule) -> None:
    admin_client.post(verb(nightly, "run"))
    Occurrence.objects.using(database).create(schedule=nightly, planned_at=nightly.created_at, outcome="made")
    assert admin_client.get(f"{LIST}{nightly.pk}/delete/").status_code == 200
    assert admin_client.post(f"{LIST}{nightly.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Schedule.objects.using(database).exists()
    assert Job.objects.using(database).count() == 1


@pytest.mark.parametrize(
    ("permission", "allowed"),
    [
        (None, set()),
        ("view_schedule", {"list", "page"}),
        ("add_schedule", {"add"}),
        ("change_schedule", {"list", "page", "edit"}),
        ("delete_schedule", {"delete"}),
        ("pause_schedule", {"pause", "resume", "skip", "unskip"}),
        ("run_schedule", {"run"}),
        ("submit_job", set()),
    ],
)
def test_each_thing_has_its_permission(
    database: str, login: Login, nightly: Schedule, permission: str | None, allowed: set[str]
) -> None:
    member = login(*([permission] if permission else []))
    form = {**given(), "name": "nightly"}
    answers = {
        "list": member.get(LIST),
        "page": member.get(page_of(nightly)),
        "add": member.get(ADD),
        "edit": member.post(page_of(nightly), form),
        **{name: member.post(verb(nightly, name)) for name in ("pause", "resume", "skip", "unskip", "run")},
        "delete": member.post(f"{LIST}{nightly.pk}/delete/", {"post": "yes"}),
    }
    assert {name for name, answer in answers.items() if answer.status_code != 403} == allowed


def test_hostile_names_are_escaped(database: str, admin_client: Client) -> None:
    row = Diary(database).schedule(name=HOSTILE, task=HOSTILE, interval_seconds=60)
    Schedule.objects.using(database).update(
        reason=HOSTILE, paused_by=HOSTILE, active=False, problem=HOSTILE, arguments={"args": [HOSTILE], "kwargs": {}}
    )
    Occurrence.objects.using(database).create(
        schedule=row, planned_at=row.created_at, outcome="skipped", reason=HOSTILE
    )
    for address in (LIST, page_of(row), f"{LIST}{row.pk}/delete/", f"{LIST}{row.pk}/history/"):
        text = admin_client.get(address).content.decode()
        assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    admin_client.post(verb(row, "resume"))
    assert "<script>alert" not in admin_client.get(page_of(row)).content.decode()


def test_rows_that_no_form_would_have_stored_are_shown(database: str, admin_client: Client, nightly: Schedule) -> None:
    rows = Schedule.objects.using(database)
    rows.update(arguments=[1], options=3, expression="nonsense", timezone="Mars", overlap="?", factory="gone")
    assert admin_client.get(LIST).status_code == 200
    assert admin_client.get(page_of(nightly)).status_code == 200


def test_the_list_shows_rule_instants_and_state(database: str, admin_client: Client, nightly: Schedule) -> None:
    pause("nightly", actor="ana", reason="stock-taking")
    schedule_recurring(tasks.add, every=900, name="quarter", args=[1])
    text = admin_client.get(LIST).content.decode()
    assert "at 07:00, Monday to Friday, Europe/Berlin time" in text
    assert ">Paused</span>" in text and "by ana (stock-taking)" in text
    assert "every 15 minutes" in text and ">Active</span>" in text
    assert "No live worker" in text


def test_the_list_asks_no_more_for_more_rows(database: str, admin_client: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connections[database]) as captured:
            assert admin_client.get(LIST).status_code == 200
        return len(captured)

    schedule_recurring(tasks.add, every=900, name="first", args=[1])
    statements()
    few = statements()
    for number in range(20):
        schedule_recurring(tasks.add, every=900, name=f"more-{number}", args=[1])
    assert statements() == few


def test_schedules_are_found_by_name_and_task(database: str, admin_client: Client, nightly: Schedule) -> None:
    schedule_recurring(tasks.add, every=900, name="quarter", args=[1])

    def found(term: str) -> list[str]:
        return [row.name for row in admin_client.get(LIST, {"q": term}).context["cl"].result_list]

    assert found("NIGHT") == ["nightly"]
    assert found("tasks.add") == ["quarter"]
    assert found("nothing") == []


def test_the_page_of_a_job_names_its_schedule_and_its_planned_instant(database: str, admin_client: Client) -> None:
    diary = Diary(database)
    schedule = diary.schedule(name="minutely", interval_seconds=60)
    diary.turn(60)
    diary.round()
    row = Job.objects.using(database).get(schedule_id=schedule.pk)
    options = dict(admin_client.get(f"/admin/jobs/job/{row.pk}/change/").context["options"])
    assert (options["Schedule"], options["Planned for"]) == ("minutely", row.scheduled_for)
    Schedule.objects.using(database).all().delete()
    options = dict(admin_client.get(f"/admin/jobs/job/{row.pk}/change/").context["options"])
    assert options["Schedule"] == "deleted meanwhile"
