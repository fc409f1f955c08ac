"""The lists of jobs and attempts: what they show, what they can be narrowed to, what they cost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from jobs import Task
from jobs.admin.read_only import BoundedPaginator
from jobs.domain.outcome import Failure
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Job
from jobs.store.browse import exception_classes
from jobs.store.database import database as open_database
from jobs.store.requeue import requeue
from tests.doors.admin.conftest import Login
from tests.support.store import Bench

JOBS = "/admin/jobs/job/"
ATTEMPTS = "/admin/jobs/attempt/"


def failed(bench: Bench, exception_class: str, task: str = "tests.work") -> int:
    """The id of a new job whose one attempt failed with that class."""
    receipt = bench.submit(task=task)
    claimed = next(one for one in bench.claim() if one.job_id == receipt.job_id)
    bench.close(
        claimed,
        Status.FAILED,
        failures=1,
        failure=Failure(exception_class, "gone", f"Traceback\n{exception_class}: gone"),
    )
    return receipt.job_id


def shown(client: Client, address: str) -> list[int]:
    """The keys of the rows on that page, in their order."""
    response = client.get(address)
    assert response.status_code == 200, (address, response)
    return [row.pk for row in response.context["cl"].result_list]


def row(client: Client, address: str = JOBS) -> str:
    """The HTML of the table of that list, without the filters beside it."""
    return client.get(address).content.decode().partition('id="result_list"')[2].partition("</table>")[0]


def test_a_row_says_where_the_job_stands_and_what_it_was_given(bench: Bench, admin_client: Client) -> None:
    bench.submit(task="shop.tasks.send_receipt", arguments='{"args": [42], "kwargs": {"copy_to": "ana"}}', priority=-7)
    text = admin_client.get(JOBS).content.decode()
    assert "send_receipt" in text
    assert "(42, copy_to=&quot;ana&quot;)" in text
    assert 'jobs-pending">Pending<' in text
    assert "due <time" in text
    assert "default / -7" in text


def test_long_arguments_are_cut_in_the_database(bench: Bench, admin_client: Client) -> None:
    bench.submit(arguments=json.dumps({"args": ["x" * 5000], "kwargs": {}}))
    response = admin_client.get(JOBS)
    (row,) = response.context["cl"].result_list
    assert len(row.stored_arguments) == 200
    assert "…)" in response.content.decode()


def test_each_status_has_its_word_and_its_time(bench: Bench, admin_client: Client) -> None:
    bench.submit(delay_seconds=10**9)
    for status in (Status.RETRY_WAIT, Status.COMPLETED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED):
        bench.submit()
        (claimed,) = bench.claim()
        bench.close(
            claimed, status, outcome=AttemptOutcome.FAILED, delay_seconds=60 if status is Status.RETRY_WAIT else None
        )
    bench.submit()
    bench.claim()
    text = admin_client.get(JOBS).content.decode()
    for word in ("Scheduled", "Waiting for retry", "Completed", "Failed", "Timed out", "Cancelled", "Running"):
        assert f">{word}</span>" in text
    for word in ("due", "retry due", "ended", "claimed"):
        assert f"{word} <time" in text


def test_jobs_are_narrowed_by_status_queue_and_task(bench: Bench, admin_client: Client) -> None:
    plain, mail, other = bench.submit(), bench.submit(queue="mail"), bench.submit(task="tests.other")
    bench.close(bench.claim(queues=("mail",))[0])
    assert shown(admin_client, f"{JOBS}?status=completed") == [mail.job_id]
    assert shown(admin_client, f"{JOBS}?queue=default") == [other.job_id, plain.job_id]
    assert shown(admin_client, f"{JOBS}?task=tests.other&status=pending") == [other.job_id]
    assert shown(admin_client, f"{JOBS}?status=nonsense") == []
    assert shown(admin_client, f"{JOBS}?task=%00&queue=%00") == []


def test_ended_jobs_come_in_the_order_of_their_end(bench: Bench, admin_client: Client) -> None:
    bench.submit_all([bench.submission() for _ in range(2)])
    first, second = bench.claim()
    bench.close(second)
    bench.turn(5)
    bench.close(first)
    assert shown(admin_client, f"{JOBS}?status=completed") == [first.job_id, second.job_id]
    assert shown(admin_client, JOBS) == [second.job_id, first.job_id]


def test_no_column_can_be_sorted_by(bench: Bench, admin_client: Client) -> None:
    low, high = bench.submit(priority=-5), bench.submit(priority=5)
    for column in range(8):
        assert shown(admin_client, f"{JOBS}?o={column}") == [high.job_id, low.job_id]


def test_jobs_are_found_by_exception_class_of_any_attempt(bench: Bench, admin_client: Client) -> None:
    timeouts = [failed(bench, "requests.exceptions.ConnectTimeout") for _ in range(2)]
    failed(bench, "builtins.ValueError")
    bench.submit()
    assert shown(admin_client, f"{JOBS}?exception=requests.exceptions.ConnectTimeout") == timeouts[::-1]
    assert shown(admin_client, f"{JOBS}?exception=builtins.KeyError") == []
    assert len(shown(admin_client, f"{ATTEMPTS}?exception=requests.exceptions.ConnectTimeout")) == 2
    text = admin_client.get(f"{JOBS}?exception=builtins.KeyError&status=failed").content.decode()
    assert '<option value="builtins.ValueError">' in text
    assert '<option value="builtins.KeyError" selected>' in text
    assert '<input type="hidden" name="status" value="failed">' in text


def test_exception_classes_are_listed_up_to_a_bound_without_reading_every_failure(bench: Bench) -> None:
    db = open_database(bench.alias)
    assert exception_classes(db, limit=3) == []
    for name in ("d", "a", "b", "a", "c", "b"):
        failed(bench, name)
    assert exception_classes(db, limit=3) == ["a", "b", "c"]
    assert exception_classes(db, limit=50) == ["a", "b", "c", "d"]


def test_search_finds_a_number_and_a_task_by_its_name(bench: Bench, admin_client: Client) -> None:
    one, two = bench.submit(task="tests.one"), bench.submit(task="tests.two")
    assert shown(admin_client, f"{JOBS}?q={one.job_id}") == [one.job_id]
    assert shown(admin_client, f"{JOBS}?q=%23{two.job_id}") == [two.job_id]
    assert shown(admin_client, f"{JOBS}?q=+tests.two+") == [two.job_id]
    for nothing in ("tests", "tests.tw", "9" * 18, "9" * 400, "²", "%00", "'"):
        assert shown(admin_client, f"{JOBS}?q={nothing}") in ([], [two.job_id, one.job_id])
    assert shown(admin_client, f"{JOBS}?q=tests.tw") == []


def test_search_takes_the_last_part_of_a_registered_name_as_the_list_spells_it(
    bench: Bench, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    receipt, unknown = bench.submit(task=receipt_task.name), bench.submit(task="tests.gone")
    assert shown(admin_client, f"{JOBS}?q=send_receipt") == [receipt.job_id]
    assert shown(admin_client, f"{JOBS}?q=receipt") == []
    assert shown(admin_client, f"{JOBS}?q=gone") == []
    assert shown(admin_client, f"{JOBS}?q=tests.gone") == [unknown.job_id]


def test_a_failed_job_names_its_exception_class_in_the_list(bench: Bench, admin_client: Client) -> None:
    failed(bench, "shop.errors.NoAnswer")
    assert '<span title="shop.errors.NoAnswer">NoAnswer</span>' in row(admin_client)


def test_a_job_that_failed_without_an_exception_says_why_in_the_list(bench: Bench, admin_client: Client) -> None:
    bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.FAILED, outcome=AttemptOutcome.LOST, reason="worker died")
    assert ">worker died</span>" in row(admin_client)


def test_a_job_waiting_for_its_retry_names_what_it_failed_with(bench: Bench, admin_client: Client) -> None:
    bench.submit()
    (claimed,) = bench.claim()
    failure = Failure("builtins.OSError", "gone", "Traceback")
    bench.close(claimed, Status.RETRY_WAIT, failures=1, failure=failure, delay_seconds=60)
    assert ">OSError</span>" in row(admin_client)


def test_a_job_that_was_put_back_does_not_show_its_old_failure(bench: Bench, admin_client: Client) -> None:
    requeue(bench.db, [failed(bench, "builtins.ValueError")])
    assert "ValueError" not in row(admin_client)
    bench.claim()
    assert "ValueError" not in row(admin_client)


@pytest.mark.parametrize(("total", "said"), [(12, ">3 / 12</span>"), (None, ">3</span>")])
def test_a_running_job_shows_its_progress_in_the_list(
    bench: Bench, admin_client: Client, total: int | None, said: str
) -> None:
    bench.submit()
    bench.claim()
    Attempt.objects.using(bench.alias).update(progress_done=3, progress_total=total, progress_message="third")
    assert said in row(admin_client)


@pytest.mark.parametrize("address", [JOBS, ATTEMPTS])
def test_a_running_job_whose_lease_is_over_shows_no_sign_of_life(
    bench: Bench, admin_client: Client, address: str
) -> None:
    bench.submit()
    bench.claim()
    attempts = Attempt.objects.using(bench.alias)
    attempts.update(lease_until=timezone.now() + timedelta(minutes=1))
    assert "no sign of life" not in row(admin_client, address)
    attempts.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert "no sign of life" in row(admin_client, address)


def test_an_ended_attempt_shows_no_lack_of_life(bench: Bench, admin_client: Client) -> None:
    bench.submit()
    bench.close(bench.claim()[0])
    Attempt.objects.using(bench.alias).update(lease_until=timezone.now() - timedelta(days=1))
    assert "no sign of life" not in row(admin_client) + row(admin_client, ATTEMPTS)


def test_a_status_that_no_job_has_yet_is_not_offered(bench: Bench, admin_client: Client) -> None:
    text = admin_client.get(JOBS).content.decode()
    assert "?status=scheduled" in text
    assert "?status=blocked" not in text
    assert shown(admin_client, f"{JOBS}?status=blocked") == []


def test_the_index_leads_to_the_jobs_and_to_the_form_and_their_list_to_the_attempts(
    bench: Bench, admin_client: Client, login: Login
) -> None:
    index = admin_client.get("/admin/").content.decode()
    assert f'href="{JOBS}"' in index
    assert f'href="{JOBS}add/"' in index
    assert f'href="{ATTEMPTS}"' not in index
    assert admin_client.get(f"{JOBS}add/")["Location"] == f"{JOBS}submit/"
    assert f'href="{ATTEMPTS}"' in admin_client.get(JOBS).content.decode()
    only_attempts = login("view_attempt")
    assert f'href="{ATTEMPTS}"' in only_attempts.get("/admin/").content.decode()
    onlooker = login("view_job")
    assert f'href="{JOBS}add/"' not in onlooker.get("/admin/").content.decode()
    assert f'href="{ATTEMPTS}"' not in onlooker.get(JOBS).content.decode()
    assert onlooker.get(f"{JOBS}add/").status_code == 403


def test_two_hundred_jobs_cost_no_more_queries_than_one(bench: Bench, admin_client: Client, settings: Settings) -> None:
    def queries(address: str) -> int:
        with (
            CaptureQueriesContext(connections["default"]) as here,
            CaptureQueriesContext(connections[bench.alias]) as there,
        ):
            assert admin_client.get(address).status_code == 200
        return len(here) + (len(there) if bench.alias != "default" else 0)

    failed(bench, "builtins.ValueError")
    few = queries(JOBS), queries(ATTEMPTS)
    for _ in range(200):
        failed(bench, "builtins.ValueError")
    assert (queries(JOBS), queries(ATTEMPTS)) == few
    # Session and user, the live workers, the count, the page, its newest attempts and the exception classes.
    assert few[0] <= 7
    assert few[1] <= 5


def test_the_count_stops_at_a_bound_and_says_so(
    bench: Bench, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.admin.read_only.COUNTED", 60)
    bench.submit_all([bench.submission() for _ in range(60)])
    text = admin_client.get(JOBS).content.decode()
    assert "more than" not in text
    assert "page 1 of 2" in text
    bench.submit_all([bench.submission() for _ in range(5)])
    assert "more than 60" in admin_client.get(JOBS).content.decode()
    assert len(shown(admin_client, f"{JOBS}?p=2")) == 10


def test_a_counted_page_does_not_look_at_arguments(bench: Bench) -> None:
    bench.submit()
    with CaptureQueriesContext(connections[bench.alias]) as captured:
        assert BoundedPaginator(Job.objects.using(bench.alias).order_by("-id"), 50).count == 1
    (query,) = captured.captured_queries
    assert "LIMIT 10001" in query["sql"]
    assert "payload" not in query["sql"]


def test_attempts_lead_to_their_place_on_the_page_of_the_job(bench: Bench, admin_client: Client) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.FAILED, reason="the wind")
    text = admin_client.get(ATTEMPTS).content.decode()
    assert "worker-1" in text
    assert "the wind" in text
    assert shown(admin_client, f"{ATTEMPTS}?outcome=failed") == [claimed.attempt_id]
    assert shown(admin_client, f"{ATTEMPTS}?outcome=lost") == []
    assert shown(admin_client, f"{ATTEMPTS}?q={receipt.job_id}") == [claimed.attempt_id]
    assert shown(admin_client, f"{ATTEMPTS}?q=nothing") == []
    response = admin_client.get(f"{ATTEMPTS}{claimed.attempt_id}/change/")
    assert (response.status_code, response["Location"]) == (302, f"{JOBS}{receipt.job_id}/change/#attempt-1")
