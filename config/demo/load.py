"""The sample load: what quickstart submits, and how each job of it ought to end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction

import jobs
from config.demo import library, tasks
from config.demo.models import Order
from jobs import Status
from jobs.models import Job
from jobs.signals import job_enqueued

_ORDERS = (
    ("ada@example.com", "Analytical Engine", 1),
    ("grace@example.com", "Nanosecond of wire", 30),
    ("linus@example.com", "Penguin", 2),
)


def submit_load(urls: Iterable[str]) -> list[int]:
    """Submit the load, with an HTTP check for each of `urls`; the ids of its jobs in the order of submission."""
    calls = [
        *(tasks.check_url.bind(url) for url in urls),
        *(tasks.import_readings.bind(path.name) for path in sorted(tasks.DATA.glob("*.csv"))),
        *(tasks.count_library.bind(folder) for folder in _largest_first(library.folders())),
    ]
    submitted: list[int] = []

    def collect(job_id: int, **_: Any) -> None:
        submitted.append(job_id)

    # By signal, because the orders' receipts are enqueued by a receiver of which this module knows nothing.
    job_enqueued.connect(collect)
    try:
        with transaction.atomic():
            tasks.slow_with_progress.enqueue()
            tasks.fails_twice_then_succeeds.enqueue()
            tasks.always_fails.enqueue()
            for customer, item, quantity in _ORDERS:
                Order.objects.create(customer=customer, item=item, quantity=quantity)
            jobs.enqueue_many(calls)
            _keep_schedules()
    finally:
        job_enqueued.disconnect(collect)
    return submitted


def _keep_schedules() -> None:
    """As rows, which a person may change; the README shows how to declare them beside their tasks."""
    jobs.schedule_recurring(tasks.count_unpacked, every=60, name="orders to pack")
    jobs.schedule_recurring(
        tasks.count_orders, cron="0 7 * * mon-fri", timezone="Europe/Berlin", name="orders of the day before"
    )


def surprises(job_ids: Sequence[int]) -> list[str]:
    """One line for each of these jobs that did not end as it ought to."""
    return [
        f"job {job.pk} ({job.task}) is {job.status}{f': {job.cause}' if job.cause else ''}"
        for job in Job.objects.filter(pk__in=job_ids).order_by("pk")
        if job.status != (Status.FAILED if job.task == tasks.always_fails.name else Status.COMPLETED)
    ]


def _largest_first(folders: Sequence[str]) -> list[str]:
    """So that the last process to end does not end long after the others."""
    return sorted(folders, key=lambda folder: -len(library.files(folder)))
