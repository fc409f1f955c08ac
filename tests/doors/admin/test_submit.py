"""The submit form: registered tasks only, and every complaint at the field that caused it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from pytest_django import Settings

from jobs import Task
from jobs.models import Job
from tests.doors.admin.conftest import Login

SUBMIT = "/admin/jobs/job/submit/"

pytestmark = pytest.mark.usefixtures("receipt_task")


def errors(client: Client, **given: Any) -> dict[str, Any]:
    response = client.post(SUBMIT, {"task": "tests.send_receipt", "args": "[42]", "kwargs": "{}", **given})
    assert response.status_code == 200, "it was submitted"
    return dict(response.context["form"].errors)


def test_a_task_is_submitted_with_its_own_options(database: str, admin_client: Client) -> None:
    response = admin_client.post(SUBMIT, {"task": "tests.send_receipt", "args": "[42]", "kwargs": '{"copy_to": "ana"}'})
    job = Job.objects.using(database).get()
    assert response["Location"] == f"/admin/jobs/job/{job.pk}/change/"
    assert job.arguments == {"args": [42], "kwargs": {"copy_to": "ana"}}
    assert (job.task, job.queue, job.priority, job.status) == ("tests.send_receipt", "mail", 50, "pending")
    said = [str(message) for message in get_messages(response.wsgi_request)]
    assert said == [f"Job #{job.pk} was submitted: tests.send_receipt."]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.action_flag, entry.user.get_username()) == (str(job.pk), ADDITION, "admin")


def test_queue_delay_and_priority_can_be_chosen(database: str, admin_client: Client) -> None:
    given = {"args": "[42]", "queue": "default", "delay_seconds": "90.5", "priority": "-3"}
    admin_client.post(SUBMIT, {"task": "tests.send_receipt", **given})
    job = Job.objects.using(database).get()
    assert (job.queue, job.priority, job.status) == ("default", -3, "scheduled")
    assert (job.run_at - job.submitted_at).total_seconds() == pytest.approx(90.5, abs=1)


def test_zero_is_a_priority_and_not_the_default(database: str, admin_client: Client) -> None:
    admin_client.post(SUBMIT, {"task": "tests.send_receipt", "args": "[42]", "priority": "0", "delay_seconds": "0"})
    assert Job.objects.using(database).get().priority == 0


@pytest.mark.parametrize("task", ["os.system", "tests.doors.admin.test_submit.errors", "", "tests.send_receipt "])
def test_only_a_registered_task_can_be_submitted(database: str, admin_client: Client, task: str) -> None:
    assert list(errors(admin_client, task=task)) == ["task"]
    assert not Job.objects.using(database).exists()


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"args": "[]"}, "args", "missing a required argument: 'order'"),
        ({"args": "[1, 2]"}, "args", "too many positional arguments"),
        ({"kwargs": '{"to": 1}'}, "kwargs", "unexpected keyword argument 'to'"),
        ({"kwargs": '{"order": 1}'}, "kwargs", "multiple values for argument 'order'"),
        ({"args": '["\\u0000"]'}, "args", "args[0]"),
        ({"args": "[[1e999]]"}, "args", "args[0][0]"),
        ({"kwargs": '{"copy_to": "\\ud800"}'}, "kwargs", "kwargs.copy_to"),
        ({"args": "[NaN]"}, "args", "NaN is no JSON number"),
        ({"args": "[1"}, "args", "This is not JSON"),
        ({"args": "[" * 100_000}, "args", "This is"),
        ({"args": "[" + "9" * 5000 + "]"}, "args", ""),
        ({"args": "{}"}, "args", "Give a list"),
        ({"args": "\0[1]"}, "args", "Null characters"),
        ({"kwargs": "[]"}, "kwargs", "Give an object"),
        ({"kwargs": '{"a": 1, "a": 2}'}, "kwargs", 'the name "a" is given twice'),
        ({"args": '["<script>alert(1)</script>", "x"]'}, "args", "too many"),
        ({"queue": "nobody-declared-it"}, "queue", "Select a valid choice"),
        ({"delay_seconds": "-1"}, "delay_seconds", ""),
        ({"delay_seconds": "nan"}, "delay_seconds", ""),
        ({"delay_seconds": "1e300"}, "delay_seconds", ""),
        ({"priority": "101"}, "priority", ""),
        ({"priority": "1.5"}, "priority", ""),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    database: str, admin_client: Client, given: dict[str, str], field: str, message: str
) -> None:
    found = errors(admin_client, **given)
    assert list(found) == [field]
    assert message in found[field][0]
    assert not Job.objects.using(database).exists()


def test_a_call_that_does_not_fit_is_told_what_would(database: str, admin_client: Client) -> None:
    (message,) = errors(admin_client, args="[1, 2]")["args"]
    assert message == (
        "receipt_task.<locals>.send_receipt(): too many positional arguments. "
        "It takes (order: int, *, copy_to: str | None = None)"
    )
    (message,) = errors(admin_client, args='["\\u0000"]')["args"]
    assert "It takes" not in message


def test_a_refusal_is_shown_and_escaped(database: str, admin_client: Client) -> None:
    given = {"task": "tests.send_receipt", "args": "[1]", "kwargs": '{"<script>alert(1)</script>": 1}'}
    text = admin_client.post(SUBMIT, given).content.decode()
    assert "unexpected keyword argument &#x27;&lt;script&gt;" in text
    assert "<script>alert" not in text
    assert "Nothing was submitted." in text


def test_arguments_beyond_the_limit_are_refused(database: str, admin_client: Client, settings: Settings) -> None:
    settings.JOBS = {**settings.JOBS, "MAX_ARGUMENT_BYTES": 100}
    assert list(errors(admin_client, args=f'["{"x" * 200}"]')) == ["args"]


def test_a_task_whose_own_queue_is_not_declared_says_so_at_the_queue(
    database: str, admin_client: Client, settings: Settings
) -> None:
    settings.JOBS = {**settings.JOBS, "QUEUES": ["default"]}
    assert "is not declared" in errors(admin_client)["queue"][0]
    admin_client.post(SUBMIT, {"task": "tests.send_receipt", "args": "[42]", "queue": "default"})
    assert Job.objects.using(database).get().queue == "default"


def test_the_form_says_what_the_chosen_task_takes(
    database: str, admin_client: Client, receipt_task: Task[Any, Any]
) -> None:
    text = admin_client.get(f"{SUBMIT}?task=tests.send_receipt").content.decode()
    assert '<option value="tests.send_receipt" selected>' in text
    assert "(order: int, *, copy_to: str | None = None) Send the receipt of one order." in text
    assert admin_client.get(f"{SUBMIT}?task=<script>alert(1)</script>").status_code == 200


def test_submitting_needs_its_own_permission_and_a_token(database: str, client: Client, login: Login) -> None:
    given = {"task": "tests.send_receipt", "args": "[42]"}
    assert client.post(SUBMIT, given)["Location"].startswith("/admin/login/")
    for member in (login(), login("view_job", "add_job", "change_job", "cancel_job")):
        assert member.get(SUBMIT).status_code == 403
        assert member.post(SUBMIT, given).status_code == 403
    assert login("submit_job", enforce_csrf_checks=True).post(SUBMIT, given).status_code == 403
    assert not Job.objects.using(database).exists()


def test_who_may_submit_but_not_look_stays_at_the_form(database: str, login: Login) -> None:
    member = login("submit_job", "requeue_job")
    response = member.post(SUBMIT, {"task": "tests.send_receipt", "args": "[42]"}, follow=True)
    assert response.redirect_chain == [(SUBMIT, 302)]
    assert "was submitted" in response.content.decode()


def test_the_list_leads_to_the_form_only_who_may_submit(database: str, login: Login) -> None:
    assert SUBMIT in login("view_job", "submit_job").get("/admin/jobs/job/").content.decode()
    assert SUBMIT not in login("view_job", "cancel_job").get("/admin/jobs/job/").content.decode()
