"""The page of one job: everything about it, and nothing that could change it behind the guard's back."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs import Task
from jobs.domain.execution import Execution
from jobs.domain.outcome import Failure, LogLine
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel
from jobs.store.database import database
from jobs.store.workers import WorkerCard, beat
from tests.support.store import Bench

HOSTILE = "</script></pre><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}"


def page(client: Client, job_id: int) -> str:
    response = client.get(f"/admin/jobs/job/{job_id}/change/")
    assert response.status_code == 200
    return response.content.decode()


def test_a_waiting_job_says_what_it_waits_for(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit(task="config.demo.tasks.nothing_like_it")
    text = page(admin_client, receipt.job_id)
    assert "no task is named config.demo.tasks.nothing_like_it in this process" in text
    assert "It has not been started yet." in text


def test_a_completed_job_shows_what_it_was_given_and_gave(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit(
        arguments='{"args": ["in.csv"], "kwargs": {}}',
        unique_key="readings-7",
        timeout_seconds=90.0,
        tags='{"account": 7}',
        at_most_once=True,
        max_retries=4,
    )
    (claimed,) = bench.claim()
    bench.turn(1.5)
    bench.close(claimed, result='{"rows": 12}', log=(LogLine(0.25, "WARNING", "shop", "two lines were empty"),))
    text = page(admin_client, receipt.job_id)
    for expected in (
        "Completed at 2027-03-01 12:00:01 UTC after 1 attempt.",
        "in.csv",
        "&quot;rows&quot;: 12",
        "0.250 s WARNING shop: two lines were empty",
        "readings-7 (not held any more)",
        "90 s",
        "at most once",
        "&quot;account&quot;: 7",
        "0 (up to 4 retries)",
        "worker-1",
    ):
        assert expected in text, expected


def test_every_attempt_shows_how_it_ended_and_why(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit(max_retries=1)
    for n in (1, 2):
        (claimed,) = bench.claim()
        bench.close(
            claimed,
            Status.PENDING if n == 1 else Status.FAILED,
            failures=1,
            failure=Failure(
                "shop.NoAnswer", f"call {n}", f"Traceback number {n}", ("builtins.OSError",), "shop.mail", "send"
            ),
        )
    text = page(admin_client, receipt.job_id)
    for n in (1, 2):
        assert f'id="attempt-{n}"' in text
        assert f"Traceback number {n}" in text
    assert text.index("Traceback number 2") < text.index("Traceback number 1")
    assert "&larr; builtins.OSError" in text
    assert "shop.mail.send" in text
    assert "?exception=shop.NoAnswer" in text


def test_a_running_job_shows_its_progress(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    bench.claim()
    Attempt.objects.using(bench.alias).update(progress_done=3, progress_total=12, progress_message="third file")
    text = page(admin_client, receipt.job_id)
    assert '<progress value="3.000000" max="12.000000">' in text
    assert "3 / 12 &middot;" in text
    assert "third file" in text
    assert "Lease until" in text
    assert "(start not recorded)" in text
    assert "Ask to stop" in text


def test_a_job_that_was_asked_to_stop_is_not_offered_to_be_asked_again(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    bench.claim()
    cancel(bench.db, [receipt.job_id])
    assert "asked to stop" in page(admin_client, receipt.job_id)
    assert "Ask to stop" not in page(admin_client, receipt.job_id)


def test_an_attempt_whose_lease_is_over_shows_no_sign_of_life(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    bench.claim()
    Attempt.objects.using(bench.alias).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert "no sign of life" in page(admin_client, receipt.job_id)


def test_a_thread_may_linger_only_as_long_as_its_worker_lives(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.TIMED_OUT, lingers=True)
    assert Attempt.objects.using(bench.alias).get().lingering_until is not None
    assert "may linger until" not in page(admin_client, receipt.job_id)
    card = WorkerCard(bench.owner.id, "worker-1", "h", 1, "both", "1", ("default",), {Execution.THREAD: 1})
    beat(database(bench.alias), card)
    assert "may linger until" in page(admin_client, receipt.job_id)


def test_a_job_that_was_moved_to_a_child_process_says_so(
    bench: Bench, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    receipt = bench.submit(task=receipt_task.name)
    assert "Process (after a loss)" not in page(admin_client, receipt.job_id)
    (claimed,) = bench.claim()
    bench.close(claimed, Status.PENDING, outcome=AttemptOutcome.LOST, losses=1, execution=Execution.PROCESS)
    assert bench.job(receipt.job_id).execution == "process"
    assert "Process (after a loss)" in page(admin_client, receipt.job_id)


def test_only_the_newest_attempts_are_shown(
    bench: Bench, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.admin.job_detail.SHOWN_ATTEMPTS", 2)
    receipt = bench.submit()
    for _ in range(3):
        (claimed,) = bench.claim()
        bench.close(claimed, Status.PENDING, failures=1)
    text = page(admin_client, receipt.job_id)
    assert "1 earlier attempt is not shown." in text
    assert 'id="attempt-1"' not in text
    assert 'id="attempt-3"' in text


def test_hostile_text_stays_text(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit(
        task=f"x{HOSTILE}",
        arguments=json.dumps({"args": [HOSTILE], "kwargs": {}}),
        unique_key=HOSTILE,
        meta=json.dumps({HOSTILE: HOSTILE}),
    )
    (claimed,) = bench.claim()
    failure = Failure(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), HOSTILE, HOSTILE)
    line = LogLine(0.0, HOSTILE, HOSTILE, HOSTILE)
    bench.close(claimed, Status.FAILED, failures=1, reason=HOSTILE, failure=failure, log=(line,))
    addresses = [
        f"/admin/jobs/job/{receipt.job_id}/change/",
        f"/admin/jobs/job/{receipt.job_id}/history/",
        "/admin/jobs/job/",
        "/admin/jobs/attempt/",
    ]
    for address in addresses:
        text = admin_client.get(address).content.decode()
        assert "alert(1)" in text
        assert "<script>alert" not in text
        assert "<img src=x" not in text


def test_a_crafted_form_writes_nothing(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit(arguments='{"args": [1], "kwargs": {}}')
    before = Job.objects.using(bench.alias).values().get(pk=receipt.job_id)
    crafted = {"status": "completed", "queue": "mail", "priority": "100", "run_at_0": "2020-01-01", "_save": "Save"}
    assert admin_client.post(f"/admin/jobs/job/{receipt.job_id}/change/", crafted).status_code == 405
    assert admin_client.post("/admin/jobs/job/add/", crafted).status_code == 403
    assert admin_client.post(f"/admin/jobs/job/{receipt.job_id}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(
        "/admin/jobs/job/", {"action": "delete_selected", "_selected_action": receipt.job_id, "post": "yes"}
    )
    admin_client.post("/admin/jobs/job/", {"form-0-id": receipt.job_id, "form-0-status": "completed", "_save": "Save"})
    assert list(Job.objects.using(bench.alias).values()) == [before]


def test_attempts_cannot_be_written_either(bench: Bench, admin_client: Client) -> None:
    bench.submit()
    (claimed,) = bench.claim()
    before = list(Attempt.objects.using(bench.alias).values())
    address = f"/admin/jobs/attempt/{claimed.attempt_id}"
    admin_client.post(f"{address}/change/", {"outcome": "completed", "_save": "Save"})
    assert admin_client.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
    assert admin_client.post("/admin/jobs/attempt/add/", {}).status_code == 403
    assert list(Attempt.objects.using(bench.alias).values()) == before


@pytest.mark.parametrize("number", ["4711", "9" * 30, "x"])
def test_an_unknown_job_is_a_message_and_no_error(bench: Bench, admin_client: Client, number: str) -> None:
    response = admin_client.get(f"/admin/jobs/job/{number}/change/", follow=True)
    assert response.status_code == 200
    assert "Perhaps it was deleted" in response.content.decode()


def test_no_page_needs_an_inline_style_or_script(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    for address in ("/admin/jobs/job/", f"/admin/jobs/job/{receipt.job_id}/change/", "/admin/jobs/job/submit/"):
        text = admin_client.get(address).content.decode()
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick=" not in text
        assert text.count("<script") == text.count('<script src="') + text.count('<script id="')
