"""A sleeping scheduler in another process hears of work at once, although its poll is half a minute away."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import jobs
from jobs import Status
from jobs.models import Attempt, Job, Worker
from tests.support import tasks
from tests.support.models import Effect
from tests.support.schedulers import scheduler
from tests.support.waiting import wait_until

SLEEPY = {"POLL": 30, "LEASE": 60, "RENEW": 30}
AT_ONCE = {"postgres": timedelta(seconds=0.5), "default": timedelta(seconds=1.5)}
"""SQLite has no notifications: a scheduler looks at the file's version ten times a second. Slack for a busy machine."""


def wait_until_asleep(alias: str) -> None:
    wait_until(lambda: Worker.objects.using(alias).filter(asleep=True).exists(), what="the scheduler sleeps")


def started_after(alias: str, row: Job) -> timedelta:
    """From its submission to its claim, both by the database's clock."""
    wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
    claimed_at = Attempt.objects.using(alias).get(job_id=row.pk).claimed_at
    took: timedelta = claimed_at - row.submitted_at
    return took


def test_a_job_submitted_to_an_idle_scheduler_of_another_process_starts_at_once(live_database: str) -> None:
    with scheduler(live_database, jobs=SLEEPY):
        for _ in range(3):
            wait_until_asleep(live_database)
            took = started_after(live_database, tasks.leave_mark.enqueue("woken"))
            assert took < AT_ONCE[live_database]


def test_the_hint_carries_no_arguments_however_large(live_database: str) -> None:
    """A notification holds 8,000 bytes, and one that is too large would fail the submit."""
    with scheduler(live_database, jobs=SLEEPY):
        wait_until_asleep(live_database)
        row = tasks.first_of.enqueue("y" * 200_000)
        assert started_after(live_database, row) < AT_ONCE[live_database]


def test_a_job_due_in_a_moment_ends_the_sleep_in_time(live_database: str) -> None:
    with scheduler(live_database, jobs=SLEEPY):
        wait_until_asleep(live_database)
        row = tasks.leave_mark.using(delay=0.7).enqueue("later")
        took = started_after(live_database, row)
        assert timedelta(seconds=0.7) <= took < timedelta(seconds=0.7) + AT_ONCE[live_database]


def test_a_cancel_reaches_running_jobs_of_another_process_at_once(live_database: str, tmp_path: Path) -> None:
    with scheduler(live_database, jobs=SLEEPY):
        rows = [tasks.hang_on_loop.enqueue("cancelled"), tasks.hang_in_process.enqueue("cancelled")]
        begun = Effect.objects.using(live_database).filter(label="cancelled")
        wait_until(lambda: begun.count() == 2, what="both run")
        wait_until_asleep(live_database)
        for row in rows:
            assert jobs.cancel(row)
        wait_until(lambda: all(jobs.get(row).status == Status.CANCELLED for row in rows), what="both are cancelled")
    for row in rows:
        stored = jobs.get(row)
        asked, ended = stored.cancel_requested_at, stored.ended_at
        assert isinstance(asked, datetime) and isinstance(ended, datetime)
        assert ended - asked < AT_ONCE[live_database] + timedelta(seconds=0.5)
