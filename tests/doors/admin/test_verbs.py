"""Cancel and requeue in the admin: by POST only, each with its own permission, with an honest count."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client

from jobs.domain.move import Move, listeners
from jobs.domain.status import Status
from tests.doors.admin.conftest import Login
from tests.support.store import Bench

JOBS = "/admin/jobs/job/"


def act(client: Client, action: str, *job_ids: int, **more: Any) -> Any:
    return client.post(JOBS, {"action": action, "_selected_action": job_ids, "index": 0, **more})


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def ended(bench: Bench, status: Status, **options: Any) -> int:
    receipt = bench.submit(**options)
    claimed = next(one for one in bench.claim() if one.job_id == receipt.job_id)
    bench.close(claimed, status, failures=1)
    return receipt.job_id


def test_cancel_counts_what_ended_what_was_asked_and_what_was_over(bench: Bench, admin_client: Client) -> None:
    over = ended(bench, Status.COMPLETED)
    running = bench.submit().job_id
    bench.claim()
    waiting = [bench.submit().job_id, bench.submit(delay_seconds=1e6).job_id]
    response = act(admin_client, "cancel_selected", over, running, *waiting)
    assert said(response) == ["2 jobs were cancelled; 1 running job was asked to stop; 1 had ended already."]
    assert [bench.status(job_id) for job_id in waiting] == ["cancelled", "cancelled"]
    assert bench.job(waiting[0]).cause == "cancelled by admin"
    assert bench.status(over) == "completed"
    assert bench.job(running).cancel_requested_at is not None
    entries = LogEntry.objects.order_by("object_id").values_list("object_id", "change_message", "user__username")
    assert sorted(entries) == sorted((str(job_id), "Cancelled.", "admin") for job_id in (running, *waiting))


def test_requeue_counts_what_went_back_and_what_could_not(bench: Bench, admin_client: Client) -> None:
    failed, keyed = ended(bench, Status.FAILED), ended(bench, Status.FAILED, unique_key="receipt-42")
    completed = ended(bench, Status.COMPLETED)
    holder = bench.submit(unique_key="receipt-42").job_id
    response = act(admin_client, "requeue_selected", failed, keyed, completed)
    assert said(response) == [
        "1 job was put back into its queue; 1 was left as it is, because another active job holds its unique key "
        "(receipt-42); 1 was left as it is: only a failed, timed out or cancelled job can be put back."
    ]
    assert [bench.status(one) for one in (failed, keyed, completed, holder)] == [
        "pending",
        "failed",
        "completed",
        "pending",
    ]
    assert [entry.object_id for entry in LogEntry.objects.all()] == [str(failed)]


def test_a_ticked_job_counts_although_it_left_the_filtered_list(bench: Bench, admin_client: Client) -> None:
    job_id = ended(bench, Status.COMPLETED)
    response = admin_client.post(
        f"{JOBS}?status=pending", {"action": "cancel_selected", "_selected_action": [job_id], "index": 0}
    )
    assert said(response) == ["1 had ended already."]


def test_everything_that_matches_is_never_acted_on(bench: Bench, admin_client: Client) -> None:
    ticked, unseen = bench.submit().job_id, bench.submit().job_id
    act(admin_client, "cancel_selected", ticked, select_across="1")
    assert (bench.status(ticked), bench.status(unseen)) == ("cancelled", "pending")
    bench.submit_all([bench.submission() for _ in range(60)])
    assert "across all pages" not in admin_client.get(JOBS).content.decode()


def test_too_many_at_once_change_nothing(bench: Bench, admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.admin.job.MAX_AT_ONCE", 2)
    job_ids = [bench.submit().job_id for _ in range(3)]
    assert said(act(admin_client, "cancel_selected", *job_ids)) == ["At most 2 jobs at once: nothing was done."]
    assert {bench.status(job_id) for job_id in job_ids} == {"pending"}


def test_the_buttons_of_the_page_do_the_same(bench: Bench, admin_client: Client) -> None:
    job_id = bench.submit().job_id
    page = f"{JOBS}{job_id}/change/"
    assert "Cancel this job" in admin_client.get(page).content.decode()
    response = admin_client.post(f"{JOBS}{job_id}/cancel/")
    assert (response.status_code, response["Location"]) == (302, page)
    assert bench.status(job_id) == "cancelled"
    assert "Put back into its queue" in admin_client.get(page).content.decode()
    response = admin_client.post(f"{JOBS}{job_id}/requeue/")
    assert said(response)[-1] == "1 job was put back into its queue."
    assert bench.status(job_id) == "pending"
    assert LogEntry.objects.count() == 2


def test_a_second_click_says_that_the_job_moved_on(bench: Bench, admin_client: Client) -> None:
    job_id = ended(bench, Status.COMPLETED)
    assert said(admin_client.post(f"{JOBS}{job_id}/cancel/")) == ["1 had ended already."]
    assert not LogEntry.objects.exists()


def test_a_finished_job_has_no_button(bench: Bench, admin_client: Client) -> None:
    text = admin_client.get(f"{JOBS}{ended(bench, Status.COMPLETED)}/change/").content.decode()
    assert f"{JOBS}1/cancel" not in text
    assert "/cancel/" not in text
    assert "/requeue/" not in text


def test_the_move_names_the_user(bench: Bench, admin_client: Client, django_capture_on_commit_callbacks: Any) -> None:
    moves: list[Move] = []
    listeners.add(moves.append)
    try:
        job_id = bench.submit().job_id
        with django_capture_on_commit_callbacks(using=bench.alias, execute=True):
            admin_client.post(f"{JOBS}{job_id}/cancel/")
    finally:
        listeners.remove(moves.append)
    assert [(move.job_id, move.new, move.actor) for move in moves if move.old] == [(job_id, Status.CANCELLED, "admin")]


@pytest.mark.parametrize("verb", ["cancel", "requeue"])
def test_a_verb_needs_its_own_permission(bench: Bench, client: Client, login: Login, verb: str) -> None:
    job_id = bench.submit().job_id if verb == "cancel" else ended(bench, Status.FAILED)
    before = bench.status(job_id)
    address = f"{JOBS}{job_id}/{verb}/"
    other = {"cancel": "requeue", "requeue": "cancel"}[verb]
    assert client.post(address).status_code == 302
    for member in (login(), login("view_job", f"{other}_job", "change_job", "delete_job")):
        assert member.post(address).status_code == 403
        assert act(member, f"{verb}_selected", job_id).status_code == 403
    assert bench.status(job_id) == before
    allowed = login("view_job", f"{verb}_job")
    assert allowed.get(address).status_code == 405
    assert allowed.post(address).status_code == 302
    assert bench.status(job_id) != before
    assert allowed.post(f"{JOBS}4711/{verb}/").status_code == 404
    assert allowed.post(f"{JOBS}{'9' * 30}/{verb}/").status_code == 404


def test_a_verb_without_the_token_is_refused(bench: Bench, login: Login) -> None:
    job_id = bench.submit().job_id
    operator = login("view_job", "cancel_job", enforce_csrf_checks=True)
    assert operator.post(f"{JOBS}{job_id}/cancel/").status_code == 403
    assert act(operator, "cancel_selected", job_id).status_code == 403
    assert bench.status(job_id) == "pending"


def test_who_may_only_look_sees_no_way_to_act(bench: Bench, client: Client, login: Login) -> None:
    job_id = bench.submit().job_id
    pages = [JOBS, f"{JOBS}{job_id}/change/", f"{JOBS}{job_id}/history/"]
    viewer, nobody = login("view_job"), login()
    for address in pages:
        text = viewer.get(address).content.decode()
        for forbidden in ("/cancel/", "/requeue/", "cancel_selected", "/submit/", "/delete/"):
            assert forbidden not in text
        assert nobody.get(address).status_code == 403
        assert client.get(address)["Location"].startswith("/admin/login/")
    assert viewer.get("/admin/jobs/attempt/").status_code == 403


def test_who_may_cancel_but_not_look_comes_back_to_where_they_may_be(bench: Bench, login: Login) -> None:
    job_id = bench.submit().job_id
    response = login("cancel_job").post(f"{JOBS}{job_id}/cancel/")
    assert response["Location"] == "/admin/"
    assert bench.status(job_id) == "cancelled"
