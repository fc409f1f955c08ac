"""A scheduler that is killed while a schedule's job runs: the schedule goes on when that job has its second chance."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone

import jobs
from jobs.models import Job, Occurrence
from jobs.store.fire import OVERLAPS
from tests.support import tasks
from tests.support.models import Effect
from tests.support.schedulers import FAST, scheduler
from tests.support.waiting import wait_until

EVERY = 1
SWEEP = FAST["RENEW"] + 0.01
SLACK = 2.0
"""For a busy machine, and for the child process in which the lost job runs again."""


def test_a_crashed_run_blocks_its_schedule_for_the_lease_and_two_sweeps_at_most(live_database: str) -> None:
    with scheduler(live_database, "--name=one", jobs=FAST) as victim:
        jobs.schedule_recurring(tasks.hang_in_thread, every=EVERY, args=("victim",))
        wait_until(Effect.objects.using(live_database).filter(label="victim").exists, what="its first job has begun")
        with scheduler(live_database, "--name=two", jobs=FAST) as other:
            victim.send(signal.SIGKILL, group=True)
            killed_at = datetime.now(timezone.utc)
            victim.wait()
            first = Job.objects.using(live_database).earliest("id")
            second = wait_until(
                lambda: Job.objects.using(live_database).filter(schedule_id=first.schedule_id, id__gt=first.pk).first(),
                what="the schedule goes on",
            )
            assert other.running
    blocked_for = second.submitted_at - killed_at
    assert blocked_for < timedelta(seconds=FAST["LEASE"] + 2 * SWEEP + EVERY + SLACK)
    first.refresh_from_db()
    assert (first.losses, first.attempts) == (1, 2)
    between = Occurrence.objects.using(live_database).filter(
        planned_at__gt=first.scheduled_for, planned_at__lt=second.scheduled_for
    )
    assert {(one.outcome, one.reason) for one in between} == {("skipped", OVERLAPS)}
