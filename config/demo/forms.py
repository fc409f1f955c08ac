"""The order form of the sample shop."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from config.demo.models import Order


class OrderForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    quantity = forms.IntegerField(min_value=1, max_value=10_000, initial=1)

    class Meta:
        model = Order
        fields: ClassVar = ["customer", "item", "quantity"]
        labels: ClassVar = {"customer": "Customer (e-mail)"}
