"""A stand-in for what a shop does with money: it refuses large orders."""

from __future__ import annotations

from config.demo.models import Order

LARGEST_QUANTITY = 100


class PaymentRefused(Exception):
    """The bank said no."""


def charge(order: Order) -> None:
    """Raises PaymentRefused."""
    if order.quantity > LARGEST_QUANTITY:
        raise PaymentRefused(f"{order.quantity} pieces are more than the {LARGEST_QUANTITY} that we sell on credit")
