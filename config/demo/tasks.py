"""The sample project's tasks: each does real work, and together they use every kind of execution."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from config.demo import http, library, readings
from config.demo.models import Order
from jobs import Context, Priority, RetryPolicy, job

DATA = Path(__file__).parent / "data"


@job(execution="process", timeout=300, takes_context=True)
def count_library(context: Context, folder: str) -> dict[str, Any]:
    """Digest and line counts of one folder of the installed Python library ("." for the modules at its top)."""
    files = library.files(folder)
    tally = library.Tally()
    for done, file in enumerate(files):
        tally.add(file)
        if done % 50 == 0:
            context.progress(done, len(files), file.name)
    return tally.summary()


@job(timeout=120, retry=RetryPolicy(max_retries=3, base_delay=1), takes_context=True)
def import_readings(context: Context, filename: str) -> dict[str, int]:
    """Import one CSV file of `data/` into the table of readings; importing it again changes nothing."""
    imported = 0
    with (DATA / filename).open(encoding="utf-8", newline="") as file:
        for batch in readings.batches(file):
            context.check()
            readings.store(Path(filename).stem, batch)
            imported += len(batch)
            context.progress(imported, message=filename)
    return {"rows": imported}


@job(timeout=15, retry=RetryPolicy(max_retries=2, base_delay=1))
async def check_url(url: str) -> dict[str, Any]:
    """Fetch one address; an answer that is no success fails the job."""
    started = time.monotonic()
    answer = await http.get(url)
    if answer.status >= 400:
        raise http.BadAnswer(f"{url} answered {answer.status}")
    milliseconds = round((time.monotonic() - started) * 1000, 1)
    return {"status": answer.status, "bytes": answer.size, "milliseconds": milliseconds}


@job(retry=RetryPolicy(max_retries=3, base_delay=0.5, max_delay=2), takes_context=True)
def fails_twice_then_succeeds(context: Context) -> str:
    if context.attempt < 3:
        raise ConnectionError(f"attempt {context.attempt}: the other side did not answer (this is part of the show)")
    return f"answered at attempt {context.attempt}"


@job(retry=RetryPolicy(max_retries=1, base_delay=0.5))
def always_fails() -> None:
    raise ValueError("this job always fails, so that you can see a failure in the admin")


@job(takes_context=True)
def slow_with_progress(context: Context, seconds: float = 5) -> None:
    steps = 50
    for step in range(1, steps + 1):
        context.check()
        time.sleep(seconds / steps)
        context.progress(step, steps, f"step {step} of {steps}")


@job(queue="mail", priority=Priority.HIGH, timeout=30, retry=RetryPolicy(max_retries=5, base_delay=2, max_delay=600))
def send_receipt(order_id: int) -> str:
    """Write an order's receipt; a real shop would send it."""
    order = Order.objects.get(pk=order_id)
    receipt = f"To {order.customer}: {order.quantity} x {order.item}, ordered on {order.placed_at:%Y-%m-%d}. Thank you!"
    Order.objects.filter(pk=order_id, receipt="").update(receipt=receipt)
    return receipt


@job(timeout=30)
def pack_order(order_id: int) -> bool:
    """Mark an order as packed; False when it was already."""
    return bool(Order.objects.filter(pk=order_id, packed_at=None).update(packed_at=timezone.now()))


@job
def count_unpacked() -> int:
    """How many orders wait to be packed."""
    return int(Order.objects.filter(packed_at=None).count())


@job(takes_context=True)
def count_orders(context: Context, days: int = 1) -> dict[str, Any]:
    """The orders of the `days` before the planned instant, however late this runs."""
    until = context.scheduled_for or timezone.now()
    since = until - timedelta(days=days)
    orders = Order.objects.filter(placed_at__gte=since, placed_at__lt=until)
    return {"since": f"{since:%Y-%m-%d %H:%M}", "until": f"{until:%Y-%m-%d %H:%M}", "orders": orders.count()}
