"""The tests' own Django app."""

from __future__ import annotations

from django.apps import AppConfig


class SupportConfig(AppConfig):
    name = "tests.support"
    label = "support"
    default_auto_field = "django.db.models.BigAutoField"
