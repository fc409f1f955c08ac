"""Admin pages of the sample project: a new order here gets its receipt job too."""

from __future__ import annotations

from django.contrib import admin

from config.demo.models import Order, Reading


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    list_display = ("id", "customer", "item", "quantity", "placed_at", "packed_at")
    readonly_fields = ("packed_at", "receipt")


@admin.register(Reading)
class ReadingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    list_display = ("station", "measured_at", "temperature", "humidity")
    list_filter = ("station",)
    list_select_related = ("station",)
    date_hierarchy = "measured_at"
