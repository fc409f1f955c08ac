"""Tasks that speak to their context."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

from jobs import Context, RetryPolicy, Snooze, job
from jobs.domain.errors import JobCancelled
from tests.support.steered import trace

logger = logging.getLogger("shop.orders")
AT_ONCE = RetryPolicy(max_retries=1, base_delay=0)


def _introduce(context: Context) -> dict[str, Any]:
    return {
        "job_id": context.job_id,
        "attempt": context.attempt,
        "fence": context.fence,
        "cancelled": context.cancelled,
    }


def _talk(context: Context) -> dict[str, Any]:
    context.log("working on %s", "it")
    context.log("careful", level=logging.WARNING)
    logger.warning("stock is low: %d", 3)
    logger.error("with NUL \0 and surrogate \ud800")
    if context.attempt == 1:
        raise ValueError("once")
    context.log("again")
    return _introduce(context)


@job(takes_context=True, retry=AT_ONCE)
def talk(context: Context) -> dict[str, Any]:
    return _talk(context)


@job(takes_context=True, retry=AT_ONCE)
async def atalk(context: Context) -> dict[str, Any]:
    await asyncio.sleep(0)
    return _talk(context)


@job(execution="process", takes_context=True, retry=AT_ONCE)
def ptalk(context: Context) -> dict[str, Any]:
    return _talk(context)


def _chatter() -> None:
    for number in range(1000):
        logger.warning("line %d %s", number, "x" * 3000)


@job
def chatter() -> None:
    _chatter()


@job
async def achatter() -> None:
    _chatter()


@job(execution="process")
def pchatter() -> None:
    _chatter()


def _measure(context: Context, folder: str) -> None:
    for done in range(1001):
        context.progress(done, 1000, f"row {done}")
    trace(folder, context.job_id).touch()


@job(takes_context=True)
def measure(context: Context, folder: str) -> None:
    _measure(context, folder)
    while not Path(folder, "open").exists():
        time.sleep(0.01)


@job(takes_context=True)
async def ameasure(context: Context, folder: str) -> None:
    _measure(context, folder)
    while not Path(folder, "open").exists():
        await asyncio.sleep(0.01)


@job(execution="process", takes_context=True)
def pmeasure(context: Context, folder: str) -> None:
    _measure(context, folder)
    while not Path(folder, "open").exists():
        time.sleep(0.01)


@job(takes_context=True)
def report(context: Context, done: str, total: str | None, message: str, folder: str) -> None:
    context.progress(float(done), None if total is None else float(total), message.encode().decode("unicode_escape"))
    trace(folder, context.job_id).touch()
    while not Path(folder, "open").exists():
        time.sleep(0.01)


@job(takes_context=True)
def report_late(context: Context, folder: str) -> None:
    """Goes on reporting although nobody listens any more."""
    context.progress(1)
    trace(folder, context.job_id).touch()
    while not Path(folder, "open").exists():
        time.sleep(0.01)
    context.progress(2)


def _notice(context: Context, folder: str) -> None:
    Path(folder, f"{context.job_id}-noticed").write_text(str(context.cancelled))


@job(takes_context=True)
def notice(context: Context, folder: str) -> None:
    """Says how it was told to stop."""
    trace(folder, context.job_id).touch()
    try:
        for _ in range(3000):
            context.check()
            time.sleep(0.01)
    except JobCancelled:
        _notice(context, folder)
        raise


@job(takes_context=True)
async def anotice(context: Context, folder: str) -> None:
    trace(folder, context.job_id).touch()
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        _notice(context, folder)
        raise


@job(execution="process", takes_context=True)
def pnotice(context: Context, folder: str) -> None:
    trace(folder, context.job_id).touch()
    try:
        time.sleep(30)
    except JobCancelled:
        _notice(context, folder)
        raise


@job(takes_context=True)
def ask_from_a_thread(context: Context) -> dict[str, Any]:
    """A thread that the job starts may use its context too."""
    answers: list[dict[str, Any]] = []

    def ask() -> None:
        context.progress(1, 2)
        context.check()
        answers.append(_introduce(context))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answers[0]


@job(takes_context=True)
def doze(context: Context) -> None:
    raise Snooze(0)
