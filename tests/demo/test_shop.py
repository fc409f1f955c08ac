"""The view and the receiver: their jobs are stored with the order or not at all."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import Client

from config.demo.models import Order
from config.demo.tasks import pack_order, send_receipt
from jobs.models import Job

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


@pytest.mark.django_db
def test_the_order_page_and_the_ping_answer(client: Client) -> None:
    assert "Place an order" in client.get("/demo/orders/").content.decode()
    assert client.get("/demo/ping/").content == b"pong\n"
    assert client.post("/demo/ping/").status_code == 405
