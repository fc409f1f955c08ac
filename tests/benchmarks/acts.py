"""What the processes of the benchmarks do: submit in several ways, and run a scheduler."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

import jobs
from jobs import submission
from jobs.models import Job, Payload
from jobs.scheduler import Scheduler
from tests.benchmarks import tasks
from tests.benchmarks.stamps import Stamps

_schedulers: list[Scheduler] = []


def start_scheduler(options: dict[str, Any]) -> None:
    scheduler = Scheduler(**{"processes": 0, "threads": 8, **options})
    _schedulers.append(scheduler)
    scheduler.start()


def stop_scheduler() -> None:
    _schedulers.pop().stop(cancel_running=True)


def drain_here(timeout: float) -> float:
    """Seconds until nothing is left to do."""
    began = time.monotonic()
    start_scheduler({})
    if not _schedulers[-1].join(timeout):
        raise TimeoutError(f"not drained within {timeout} s")
    took = time.monotonic() - began
    stop_scheduler()
    return took


def open_stamps(name: str) -> None:
    tasks.stamps.append(Stamps(name))


def without_hint() -> None:
    vars(submission)["hint_due"] = lambda db: None


def enqueue_many(count: int, **options: Any) -> float:
    """Seconds."""
    calls = [tasks.noop.using(**options).bind(number) for number in range(count)]
    began = time.perf_counter()
    jobs.enqueue_many(calls)
    return time.perf_counter() - began


def bulk_create(count: int) -> float:
    """Seconds, for the same rows by Django's own means."""
    began = time.perf_counter()
    with transaction.atomic():
        rows = Job.objects.bulk_create([_job() for _ in range(count)], batch_size=1000)
        Payload.objects.bulk_create([_payload(row, number) for number, row in enumerate(rows)], batch_size=1000)
    return time.perf_counter() - began


def enqueue_each(count: int) -> float:
    began = time.perf_counter()
    for number in range(count):
        tasks.noop.enqueue(number)
    return time.perf_counter() - began


def create_each(count: int) -> float:
    began = time.perf_counter()
    for number in range(count):
        with transaction.atomic():
            row = _job()
            row.save()
            _payload(row, number).save()
    return time.perf_counter() - began


def enqueue_stamps(count: int, pause: float) -> list[float]:
    """The monotonic instants at which each was called, one after the other; stamp 0 is not used."""
    called = []
    for number in range(1, count + 1):
        time.sleep(pause)
        called.append(time.monotonic())
        tasks.stamp.enqueue(number)
    return called


def enqueue_naps(count: int, seconds: float, long_seconds: float) -> float:
    """One long nap, then `count` short ones, numbered from 1; gives the monotonic instant of the commit."""
    jobs.enqueue_many(
        [tasks.nap.bind(0, long_seconds), *(tasks.nap.bind(number, seconds) for number in range(1, count + 1))]
    )
    return time.monotonic()


def _job() -> Job:
    return Job(task=tasks.noop.name, queue="default", execution="thread", max_retries=3)


def _payload(row: Job, number: int) -> Payload:
    return Payload(job=row, arguments={"args": [number], "kwargs": {}})
