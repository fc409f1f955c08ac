"""A worker that lives long does not grow: failures, their frames, their texts and debug logs are let go."""

from __future__ import annotations

import gc
import signal

import psutil
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django import Settings

import jobs
from jobs.models import Job
from jobs.store.database import database
from jobs.store.verify import verify
from tests.support import tasks
from tests.support.engine import running
from tests.support.schedulers import scheduler
from tests.support.waiting import wait_until

MIB = 1024 * 1024


def sizes_after(alias: str, *counts: int, debug: bool = False) -> list[int]:
    """The resident memory, in bytes, of a worker after that many jobs that failed with a megabyte in their locals."""
    calls = (tasks.fail_with_a_megabyte, tasks.afail_with_a_megabyte)
    environment = {"DEBUG": "1" if debug else "", "LOG_LEVEL": "CRITICAL"}
    sizes, done = [], 0
    with scheduler(alias, "--processes=0", environment=environment, wait=False) as worker:
        for count in counts:
            while done < count:
                batch = min(1000, count - done)
                jobs.enqueue_many([calls[number % 2].bind() for number in range(batch)])
                done += batch
                # As they come, so that memory is not spent on a backlog.
                wait_until(lambda: ended(alias) >= done, timeout=120, what=f"{done} have ended")  # noqa: B023
            sizes.append(psutil.Process(worker.pid).memory_info().rss)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
    assert list(verify(database(alias), overdue_seconds=0.0)) == []
    print(f"{alias}, debug {debug}:", {n: f"{size / MIB:.1f} MiB" for n, size in zip(counts, sizes, strict=True)})  # noqa: T201
    return sizes


def ended(alias: str) -> int:
    return int(Job.objects.using(alias).filter(ended_at__isnull=False).count())


def test_failing_jobs_with_a_megabyte_of_locals_leave_nothing_in_memory(live_database: str) -> None:
    after_1000, after_3000 = sizes_after(live_database, 1000, 3000)
    assert after_3000 < after_1000 * 1.1


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
def test_memory_after_fifty_thousand_failing_jobs_is_that_after_ten_thousand(live_database: str, debug: bool) -> None:
    sizes = sizes_after(live_database, 10_000, 20_000, 30_000, 40_000, 50_000, debug=debug)
    assert sizes[-1] < sizes[0] * 1.05


def test_the_engine_keeps_no_log_of_its_statements_under_debug(live_database: str, settings: Settings) -> None:
    settings.DEBUG = True
    with running(poll=0.05) as scheduler:
        for _ in range(10):
            jobs.enqueue_many([tasks.add.bind(number) for number in range(20)])
            assert scheduler.join(15)
        gc.collect()  # the connections of earlier tests
        kept = [
            len(one.queries_log)
            for one in gc.get_objects()
            if isinstance(one, BaseDatabaseWrapper) and getattr(one, "_jobs_engine", False)
        ]
    assert kept and max(kept) < 40, kept
