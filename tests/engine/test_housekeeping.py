"""What the housekeeper looks after while a scheduler runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from jobs.models import Occurrence, Schedule
from tests.support.engine import running
from tests.support.waiting import wait_until

NEWEST = datetime(2020, 1, 1, tzinfo=timezone.utc)


def test_old_occurrences_are_pruned(live_database: str) -> None:
    schedule = Schedule.objects.using(live_database).create(name="s", task="tests.work", active=False)
    rows = Occurrence.objects.using(live_database)
    rows.bulk_create(
        Occurrence(schedule=schedule, planned_at=NEWEST - timedelta(minutes=age), outcome="skipped")
        for age in range(203)
    )
    with running():
        wait_until(lambda: rows.count() == 200, what="all but the newest 200 are gone")
