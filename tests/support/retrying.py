"""Tasks that fail, and decide themselves whether to try again."""

from __future__ import annotations

import asyncio
import builtins
import threading
import time
from dataclasses import replace

from jobs import RetryPolicy, job

PICKY = RetryPolicy(max_retries=2, base_delay=0, retry_on=(LookupError,), give_up_on=(IndexError,))


@job(retry=RetryPolicy(max_retries=2, base_delay=0))
def three_times() -> None:
    raise ValueError("always")


NO_RETRY_OPTIONS = replace(three_times.definition.options, retry=RetryPolicy(max_retries=0))


@job(retry=PICKY)
def picky(name: str) -> None:
    raise getattr(builtins, name)("as asked")


@job(retry=PICKY)
async def apicky(name: str) -> None:
    raise getattr(builtins, name)("as asked")


@job(retry=PICKY, execution="process")
def ppicky(name: str) -> None:
    raise getattr(builtins, name)("as asked")


def break_down(attempt: int, exception: BaseException) -> float:
    raise RuntimeError("the policy has a bug")


@job(retry=break_down)
def broken(*, stay: bool = False) -> None:
    if stay:
        time.sleep(0.6)
    raise ValueError("the job's own")


@job(retry=break_down)
async def abroken(*, stay: bool = False) -> None:
    if stay:
        await asyncio.sleep(0.6)
    raise ValueError("the job's own")


@job(retry=break_down, execution="process")
def pbroken(*, stay: bool = False) -> None:
    if stay:
        time.sleep(0.6)
    raise ValueError("the job's own")


def twice(attempt: int, exception: BaseException) -> float | None:
    return {1: 0.0, 2: 0.3}.get(attempt)


@job(retry=twice)
def own_way() -> None:
    raise ValueError("again")


thinking, thought = threading.Event(), threading.Event()


def think(attempt: int, exception: BaseException) -> float:
    thinking.set()
    thought.wait(60)
    return 0.0


@job(retry=RetryPolicy(max_retries=1, backoff=think))
def thoughtful() -> None:
    time.sleep(0.6)


@job(retry=RetryPolicy(max_retries=1, backoff=think))
async def athoughtful() -> None:
    await asyncio.sleep(30)


@job
def sleepy() -> None:
    time.sleep(0.6)


@job
async def asleepy() -> None:
    await asyncio.sleep(30)
