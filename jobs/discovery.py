"""Import each installed app's `tasks.py`; one that fails is reported and hurts only its own tasks."""

from __future__ import annotations

import logging
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

logger = logging.getLogger(__name__)

failed: dict[str, str] = {}
"""Module to error, for the system check."""


def import_tasks() -> None:
    for app in apps.get_app_configs():
        if app.module is None or not module_has_submodule(app.module, "tasks"):
            continue
        name = f"{app.name}.tasks"
        try:
            import_module(name)
        except (Exception, SystemExit) as error:
            failed[name] = f"{type(error).__name__}: {error}"
            logger.exception("%s cannot be imported: its tasks are unknown to this process", name)
        else:
            failed.pop(name, None)
