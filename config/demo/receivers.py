"""A signal receiver that enqueues: every new order gets its receipt, wherever the order was made."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from config.demo.models import Order
from config.demo.tasks import send_receipt


@receiver(post_save, sender=Order)
def receipt_for_new_order(instance: Order, created: bool, raw: bool, **kwargs: Any) -> None:
    # In the transaction that saves the order: if that is rolled back, there is no job either.
    if created and not raw:
        send_receipt.using(unique_key=f"receipt-{instance.pk}").enqueue(instance.pk)
