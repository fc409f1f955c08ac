"""Pause, resume, skip and run now: by POST only, and honest about what was not done."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django import Settings

from jobs.domain.factories import Factory, factories
from jobs.models import Job, Schedule
from jobs.recurring import pause
from tests.doors.admin.conftest import Login
from tests.support.schedule_pages import LIST, page_of, said, stored, verb


def test_pause_resume_skip_and_run(database: str, admin_client: Client, nightly: Schedule) -> None:
    response = admin_client.post(verb(nightly, "run"))
    job = Job.objects.using(database).get()
    assert (job.task, job.schedule_id) == ("tests.send_receipt", nightly.pk)
    assert response["Location"] == page_of(nightly)
    assert said(response) == [f'Job <a href="/admin/jobs/job/{job.pk}/change/">#{job.pk}</a> was made.']

    assert nightly.next_run_at is not None
    admin_client.post(verb(nightly, "skip"), {"planned": nightly.next_run_at.isoformat()})
    row = stored(database)
    assert (row.skip_next, row.skipped_by, row.next_run_at) == (True, "admin", nightly.next_run_at)
    admin_client.post(verb(nightly, "unskip"))
    assert stored(database).skip_next is False

    admin_client.post(verb(nightly, "pause"), {"until": "2100-01-01T12:30", "reason": "stock-taking"})
    row = stored(database)
    assert row.paused_until == datetime(2100, 1, 1, 12, 30, tzinfo=timezone.utc)
    assert (row.paused_by, row.reason, row.next_run_at) == ("admin", "stock-taking", None)
    admin_client.post(verb(nightly, "resume"))
    assert stored(database).next_run_at is not None
    admin_client.post(verb(nightly, "pause"))
    assert stored(database).active is False
    assert LogEntry.objects.count() == 6


def test_the_pause_ends_by_the_sites_clock(
    database: str, admin_client: Client, nightly: Schedule, settings: Settings
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    assert "until (Asia/Tokyo" in admin_client.get(page_of(nightly)).content.decode()
    admin_client.post(verb(nightly, "pause"), {"until": "2100-01-01T12:30"})
    assert stored(database).paused_until == datetime(2100, 1, 1, 3, 30, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("posted", "message"),
    [
        ({"until": "2020-01-01T00:00"}, "Until: that is past already"),
        ({"until": "soon"}, "Until: Enter a valid date/time."),
        ({"reason": "x" * 201}, "Reason: Ensure"),
    ],
)
def test_a_pause_that_cannot_be_is_refused(
    database: str, admin_client: Client, nightly: Schedule, posted: dict[str, str], message: str
) -> None:
    (refused,) = said(admin_client.post(verb(nightly, "pause"), posted))
    assert refused.startswith(f"Nothing was done: {message}")
    assert stored(database).active and stored(database).paused_until is None


def test_an_instant_that_has_fired_meanwhile_is_not_skipped(
    database: str, admin_client: Client, nightly: Schedule
) -> None:
    response = admin_client.post(verb(nightly, "skip"), {"planned": "2020-01-01T00:00:00+00:00"})
    assert "look again" in said(response)[0]
    assert stored(database).skip_next is False


def test_what_cannot_run_now_says_why(database: str, admin_client: Client, nightly: Schedule) -> None:
    Schedule.objects.using(database).update(task="tests.gone")
    assert "tests.gone" in said(admin_client.post(verb(nightly, "run")))[0]
    Schedule.objects.using(database).update(task="tests.send_receipt", factory="tests.broken")

    def broken(at: datetime) -> Any:
        raise RuntimeError("no orders\nhere")

    factories.add(Factory("tests.broken", "tests.send_receipt", broken))
    try:
        response = admin_client.post(verb(nightly, "run"))
    finally:
        factories._factories.pop("tests.broken")
    assert said(response)[-1] == "Nothing was done: RuntimeError: no orders"
    assert not Job.objects.using(database).exists()
    assert not LogEntry.objects.exists()


def test_buttons_want_a_post_with_a_token(database: str, admin_client: Client, login: Login, nightly: Schedule) -> None:
    for name in ("pause", "resume", "skip", "unskip", "run"):
        assert admin_client.get(verb(nightly, name)).status_code == 405
        assert admin_client.post(f"{LIST}{2**63}/{name}/").status_code == 404
    strict = login("pause_schedule", "run_schedule", enforce_csrf_checks=True)
    assert strict.post(verb(nightly, "pause")).status_code == 403
    assert strict.post(verb(nightly, "run")).status_code == 403
    assert not Job.objects.using(database).exists()


def test_the_page_shows_only_the_buttons_that_work(database: str, login: Login, nightly: Schedule) -> None:
    looking = login("view_schedule").get(page_of(nightly)).content.decode()
    assert "Run now" not in looking and "/pause/" not in looking and 'name="_save"' not in looking
    assert "at 07:00" in looking and "[\n" in looking
    acting = login("view_schedule", "pause_schedule", "run_schedule").get(page_of(nightly)).content.decode()
    assert "Run now" in acting and "/pause/" in acting and "/skip/" in acting and "/resume/" not in acting
    pause("nightly")
    acting = login("view_schedule", "pause_schedule").get(page_of(nightly)).content.decode()
    assert "/resume/" in acting and "/pause/" not in acting and "/skip/" not in acting
