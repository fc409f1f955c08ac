"""A schedule that fires every second, and what must be true of it whatever happened to its planner."""

from __future__ import annotations

import itertools
from datetime import timedelta

from django.utils import timezone

import jobs
from jobs.models import Job, Occurrence
from tests.support import tasks
from tests.support.waiting import wait_until

NAME = "ticks"


def tick(seconds: float | None = None) -> None:
    """From now on, for ever or for so many seconds."""
    end = None if seconds is None else timezone.now() + timedelta(seconds=seconds)
    jobs.schedule_recurring(
        tasks.add, every=1, args=[1], name=NAME, overlap="allow", catch_up="all", catch_up_cap=100, end=end
    )


def ticks(alias: str) -> int:
    return int(Occurrence.objects.using(alias).filter(schedule__name=NAME).count())


def wait_for_another(alias: str) -> None:
    """One that is planned from now on."""
    now = timezone.now()
    later = Occurrence.objects.using(alias).filter(schedule__name=NAME, planned_at__gt=now, outcome="made")
    wait_until(later.exists, timeout=40, what="it fires again")


def assert_each_instant_made_one_job(alias: str) -> None:
    """Without a gap, and without a second one."""
    made = Occurrence.objects.using(alias).filter(schedule__name=NAME, outcome="made").order_by("planned_at")
    planned = list(made.values_list("planned_at", flat=True))
    assert planned and Occurrence.objects.using(alias).count() == len(planned)
    assert {later - earlier for earlier, later in itertools.pairwise(planned)} <= {timedelta(seconds=1)}
    own = Job.objects.using(alias).filter(schedule_id__isnull=False).order_by("scheduled_for")
    assert list(own.values_list("scheduled_for", flat=True)) == planned
