"""The view and the receiver: their jobs are stored with the order or not at all."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import Client

from config.demo.models import Order
from config.demo.tasks import pack_order, send_receipt
from jobs.models import Job

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
GOOD = {"customer": "ada@example.com", "item": "Analytical Engine", "quantity": "2"}


@pytest.fixture
def client() -> Client:
    return Client(SERVER_NAME="localhost")


def stored() -> tuple[int, list[str]]:
    return Order.objects.count(), sorted(Job.objects.values_list("task", flat=True))


@pytest.mark.django_db(transaction=True)
def test_the_view_stores_the_order_and_both_jobs(client: Client) -> None:
    answer = client.post("/demo/orders/", GOOD)
    assert answer.status_code == 201
    assert stored() == (1, sorted([pack_order.name, send_receipt.name]))
    assert Job.objects.get(pk=answer.json()["job"]).arguments["args"] == [answer.json()["order"]]


@pytest.mark.django_db(transaction=True)
def test_a_refused_payment_leaves_no_order_and_no_job(client: Client) -> None:
    answer = client.post("/demo/orders/", {**GOOD, "quantity": "101"})
    assert answer.status_code == 402
    assert stored() == (0, [])


@pytest.mark.django_db(transaction=True)
def test_an_error_after_the_order_was_saved_removes_the_receivers_job() -> None:
    with transaction.atomic():
        Order.objects.create(customer="ada@example.com", item="Engine")
        assert stored() == (1, [send_receipt.name])
        transaction.set_rollback(True)
    assert stored() == (0, [])


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_savepoint_removes_only_its_own_job() -> None:
    with transaction.atomic():
        kept = Order.objects.create(customer="ada@example.com", item="kept")
        with transaction.atomic():
            Order.objects.create(customer="ada@example.com", item="dropped")
            transaction.set_rollback(True)
    assert stored() == (1, [send_receipt.name])
    assert Job.objects.get().unique_key == f"receipt-{kept.pk}"


@pytest.mark.django_db
def test_a_saved_again_order_gets_no_second_receipt() -> None:
    order = Order.objects.create(customer="ada@example.com", item="Engine")
    order.quantity = 3
    order.save()
    assert Job.objects.count() == 1


@pytest.mark.django_db
def test_a_form_with_errors_stores_nothing(client: Client) -> None:
    answer = client.post("/demo/orders/", {**GOOD, "customer": "nobody"})
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["customer"]
    assert stored() == (0, [])


@pytest.mark.django_db(transaction=True)
def test_a_browser_gets_a_page_that_leads_to_both_jobs(client: Client) -> None:
    answer = client.post("/demo/orders/", GOOD, headers={"Accept": BROWSER}, follow=True)
    assert answer.redirect_chain == [("/demo/orders/", 302)]
    text = answer.content.decode()
    for job in Job.objects.all():
        assert f'<a href="/admin/jobs/job/{job.pk}/change/">{job.task.rpartition(".")[2]} #{job.pk}</a>' in text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"quantity": "101"}, 402, "that we sell on credit"),
        ({"customer": "nobody"}, 400, "valid email"),
        ({"quantity": "0"}, 400, "greater than or equal to 1"),
    ],
)
def test_a_browser_gets_its_form_back_with_what_is_wrong(
    client: Client, wrong: dict[str, str], status: int, said: str
) -> None:
    answer = client.post("/demo/orders/", {**GOOD, **wrong}, headers={"Accept": BROWSER})
    assert answer.status_code == status
    assert said in answer.content.decode()
    assert 'class="errorlist"' in answer.content.decode()
    assert stored() == (0, [])


@pytest.mark.django_db
def test_the_form_says_what_it_takes(client: Client) -> None:
    text = client.get("/demo/orders/").content.decode()
    assert "Customer (e-mail)" in text
    assert 'min="1"' in text


def test_a_browser_that_asks_for_an_icon_gets_an_answer(client: Client) -> None:
    assert client.get("/favicon.ico").status_code == 204


@pytest.mark.django_db
def test_the_order_page_and_the_ping_answer(client: Client) -> None:
    assert "Place an order" in client.get("/demo/orders/").content.decode()
    assert client.get("/demo/ping/").content == b"pong\n"
    assert client.post("/demo/ping/").status_code == 405
