"""The sample project as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "config.demo"
    label = "demo"
    default_auto_field = "django.db.models.BigAutoField"
