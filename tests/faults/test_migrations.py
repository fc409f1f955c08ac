"""Migrating under a running scheduler: it waits out what it cannot read, and burns nothing meanwhile."""

from __future__ import annotations

import signal

import pytest
from django.db import connections

import jobs
from jobs.models import Job
from jobs.store.database import database
from jobs.store.verify import verify
from tests.support import tasks
from tests.support.models import Effect
from tests.support.schedulers import FAST, scheduler
from tests.support.waiting import wait_until


def alter(alias: str, *statements: str) -> None:
    with connections[alias].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def ran(alias: str, label: str) -> bool:
    found: bool = Effect.objects.using(alias).filter(label=label).exists()
    return found


@pytest.mark.parametrize(
    ("there", "back", "accepts"),
    [
        ("ALTER TABLE jobs_job RENAME TO jobs_old", "ALTER TABLE jobs_old RENAME TO jobs_job", False),
        ("ALTER TABLE jobs_attempt RENAME TO jobs_old", "ALTER TABLE jobs_old RENAME TO jobs_attempt", True),
        (
            "ALTER TABLE jobs_job RENAME COLUMN losses TO lost",
            "ALTER TABLE jobs_job RENAME COLUMN lost TO losses",
            True,
        ),
    ],
    ids=["no jobs", "no attempts", "a column renamed"],
)
def test_a_scheduler_outlives_a_schema_it_cannot_read_and_goes_on_when_it_is_back(
    live_database: str, there: str, back: str, accepts: bool
) -> None:
    with scheduler(live_database, "--threads=1", jobs=FAST) as worker:
        tasks.leave_mark.enqueue("before")
        wait_until(lambda: ran(live_database, "before"))
        waiting = [tasks.leave_mark.enqueue("after") for _ in range(3)]
        wait_until(lambda: {jobs.get(row).status for row in waiting} == {"completed"})
        alter(live_database, there)
        try:
            if accepts:
                tasks.leave_mark.enqueue("meanwhile")
            worker.wait_for("the database failed", timeout=30)
        finally:
            alter(live_database, back)
        late = tasks.leave_mark.enqueue("late")
        wait_until(lambda: jobs.get(late).status == "completed", timeout=30, what="it goes on")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    assert "Traceback" not in worker.output
    assert set(Job.objects.using(live_database).values_list("status", "attempts", "losses", "failures")) == {
        ("completed", 1, 0, 0)
    }
    assert list(verify(database(live_database), overdue_seconds=0.0)) == []


def test_an_old_scheduler_runs_on_after_a_newer_release_has_added_a_column(live_database: str) -> None:
    with scheduler(live_database, jobs=FAST) as worker:
        first = tasks.leave_mark.enqueue("before")
        wait_until(lambda: jobs.get(first).status == "completed")
        alter(live_database, "ALTER TABLE jobs_job ADD COLUMN colour varchar(20) NOT NULL DEFAULT 'red'")
        try:
            rows = [
                tasks.leave_mark.enqueue("after"),
                tasks.pleave_mark.enqueue("after"),
                tasks.misbehave.enqueue("ok"),
            ]
            wait_until(lambda: {jobs.get(row).status for row in rows} == {"completed"})
        finally:
            alter(live_database, "ALTER TABLE jobs_job DROP COLUMN colour")
        again = tasks.leave_mark.enqueue("reversed")
        wait_until(lambda: jobs.get(again).status == "completed", what="and after its removal")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    assert "the database failed" not in worker.output
    assert list(verify(database(live_database), overdue_seconds=0.0)) == []
