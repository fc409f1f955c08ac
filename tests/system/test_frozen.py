"""A worker frozen past its lease: when it wakes up, its jobs are another's, and it writes nothing more about them."""

from __future__ import annotations

import signal
from pathlib import Path

import jobs
from jobs import Status
from jobs.models import Attempt
from tests.support import tasks
from tests.support.models import Effect
from tests.support.schedulers import FAST, orphaned, scheduler
from tests.support.waiting import wait_until


def test_a_worker_that_wakes_up_past_its_lease_changes_nothing_and_stops_that_work(
    live_database: str, tmp_path: Path
) -> None:
    until = tmp_path / "leave"
    debug = {"LOG_LEVEL": "DEBUG"}
    with scheduler(live_database, "--name=frozen", jobs=FAST, environment=debug) as frozen:
        rows = [task.enqueue("frozen", str(until)) for task in (tasks.hang_in_thread, tasks.hang_on_loop)]
        wait_until(lambda: Effect.objects.using(live_database).filter(label="frozen").count() == 2)
        frozen.send(signal.SIGSTOP)
        with scheduler(live_database, "--name=other", jobs=FAST):
            wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows), what="run by the other")
        before = list(Attempt.objects.using(live_database).order_by("id").values())
        frozen.send(signal.SIGCONT)
        for row in rows:
            frozen.wait_for(f"job {row.pk}, attempt .*: the lease is lost; its run is stopped")
        # The thread cannot be stopped; when it ends, its outcome is discarded.
        until.touch()
        tasks.leave_mark.enqueue("after")
        wait_until(lambda: Effect.objects.using(live_database).filter(label="after").exists(), what="it works on")
        frozen.send(signal.SIGTERM)
        assert frozen.wait() == 0, frozen.output
    assert "Traceback" not in frozen.output
    after = Attempt.objects.using(live_database).filter(job__in=rows).order_by("id")
    assert list(after.values()) == before
    assert [(one.number, one.outcome, one.worker_name) for one in after.order_by("number", "id")] == [
        (1, "lost", "frozen"),
        (1, "lost", "frozen"),
        (2, "completed", "other"),
        (2, "completed", "other"),
    ]
    assert [jobs.get(row).status for row in rows] == [Status.COMPLETED] * 2
    assert orphaned(live_database) == 0
