"""What the sample jobs read and write: weather readings from CSV files, and a shop's orders."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models


class Station(models.Model):
    code = models.SlugField(unique=True)

    def __str__(self) -> str:
        return self.code


class Reading(models.Model):
    station = models.ForeignKey(Station, on_delete=models.CASCADE, related_name="readings")
    measured_at = models.DateTimeField()
    temperature = models.DecimalField(max_digits=4, decimal_places=1, null=True, help_text="degrees Celsius")
    humidity = models.PositiveSmallIntegerField(null=True, help_text="percent")

    class Meta:
        constraints: ClassVar = [
            # A job may run twice: with this the second import of a file changes nothing.
            models.UniqueConstraint(fields=["station", "measured_at"], name="demo_reading_once")
        ]

    def __str__(self) -> str:
        return f"{self.station_id} at {self.measured_at:%Y-%m-%d %H:%M}"


class Order(models.Model):
    customer = models.EmailField()
    item = models.CharField(max_length=100)
    quantity = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(10_000)])
    placed_at = models.DateTimeField(auto_now_add=True)
    packed_at = models.DateTimeField(null=True, blank=True, editable=False)
    receipt = models.TextField(blank=True, editable=False)

    def __str__(self) -> str:
        return f"order {self.pk}: {self.quantity} x {self.item}"
