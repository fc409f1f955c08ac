"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    label = "jobs"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Inside ready(): these load models, which Django allows only from here on.
        from jobs import checks, signals  # noqa: PLC0415
        from jobs.discovery import import_tasks  # noqa: PLC0415

        checks.register_checks()
        signals.connect()
        import_tasks()
