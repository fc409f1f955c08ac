"""Tell, above the list of jobs, that nobody is there to run them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from jobs.conf import jobs_settings
from jobs.store.database import database
from jobs.store.workers import live_roles


@dataclass(frozen=True, slots=True)
class Missing:
    sentence: str
    command: str


def missing_workers() -> Missing | None:
    """None when both roles have a live process. One query over the few rows of workers."""
    settings = jobs_settings()
    roles = live_roles(database(settings.DATABASE), within_seconds=settings.LEASE)
    runs, keeps_house = bool(roles & {"both", "worker"}), bool(roles & {"both", "scheduler"})
    if runs and keeps_house:
        return None
    if runs:
        sentence = _("No live scheduler: nothing that becomes due later is noticed, and lost jobs are not taken back.")
        return Missing(sentence, "python manage.py runscheduler --role scheduler")
    if keeps_house:
        return Missing(_("No live worker: nothing that is due runs."), "python manage.py runscheduler --role worker")
    return Missing(_("No live worker: jobs wait until one is started."), "python manage.py runscheduler")
