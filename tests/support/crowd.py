"""What many threads and jobs do to the queue at the same time."""

from __future__ import annotations

import random
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

import jobs
from jobs import job
from jobs.models import Job


def meddle(seed: int, *, depth: int) -> None:
    """Submit one job of each execution, cancel some, requeue some."""
    rng = random.Random(seed)
    rows = [
        quick.enqueue(),
        aquick.enqueue(),
        pquick.enqueue() if rng.random() < 0.2 else quick.using(delay=0.05).enqueue(),
    ]
    if depth:
        rows.append(rng.choice([nest, anest] + [pnest] * (rng.random() < 0.3)).enqueue(rng.randrange(2**31)))
    for row in rng.sample(rows, 2):
        jobs.cancel(row)
    for row in rng.sample(rows, 2):
        jobs.requeue(row)


def close_connections() -> None:
    connections.close_all()


@job
def quick() -> None: ...


@job
async def aquick() -> None: ...


@job(execution="process")
def pquick() -> None: ...


@job
def nest(seed: int) -> None:
    meddle(seed, depth=0)


@job
async def anest(seed: int) -> None:
    await sync_to_async(meddle)(seed, depth=0)


@job(execution="process")
def pnest(seed: int) -> None:
    meddle(seed, depth=0)


def _claim_key() -> dict[str, Any]:
    row: Job = quick.using(unique_key="one", delay=3600).enqueue()
    return {"created": row.created, "id": row.pk}


@job
def claim_key() -> dict[str, Any]:
    return _claim_key()


@job
async def aclaim_key() -> dict[str, Any]:
    return await sync_to_async(_claim_key)()


@job(execution="process")
def pclaim_key() -> dict[str, Any]:
    return _claim_key()
