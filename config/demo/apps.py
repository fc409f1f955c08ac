"""The sample project as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "config.demo"
    label = "demo"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Inside ready(): it loads models, which Django allows only from here on.
        from config.demo import receivers  # noqa: F401, PLC0415
