"""Several scheduler processes at once: each job runs exactly once, by what the bodies wrote themselves."""

from __future__ import annotations

import contextlib
import signal

import pytest
from django.db.models import Count

import jobs
from tests.support import tasks
from tests.support.models import Effect
from tests.support.schedulers import orphaned, scheduler, statuses
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    ("live_database", "processes", "size"), [("postgres", 4, 5000), ("sqlite", 4, 5000)], indirect=["live_database"]
)
def test_processes_that_drain_together_run_each_job_exactly_once(live_database: str, processes: int, size: int) -> None:
    in_children, on_loops = size // 100, size // 10
    calls = [tasks.pleave_mark.bind("process") for _ in range(in_children)]
    calls += [tasks.aleave_mark.bind("async") for _ in range(on_loops)]
    calls += [tasks.leave_mark.bind("thread") for _ in range(size - on_loops - in_children)]
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(scheduler(live_database, wait=False)) for _ in range(processes)]
        for process in started:
            process.wait_for("promotes, runs")
        jobs.enqueue_many(calls)
        wait_until(lambda: statuses(live_database) == {"completed": size}, timeout=90)
        for process in started:
            process.send(signal.SIGTERM)
        assert [process.wait() for process in started] == [0] * processes, [one.output[-500:] for one in started]
    effects = Effect.objects.using(live_database)
    again = effects.values("job_id").annotate(times=Count("id")).filter(times__gt=1)
    assert list(again) == []
    assert effects.count() == size
    assert orphaned(live_database) == 0
    # Otherwise one process did it all, and nothing was tested.
    assert effects.filter(label="thread").values("pid").distinct().count() == processes
