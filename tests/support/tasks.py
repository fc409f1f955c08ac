"""Tasks that tests submit; found like any installed app's."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from jobs import CancelJob, Context, NonRetryableError, RetryPolicy, Snooze, job
from jobs.conf import jobs_settings
from tests.support import crowd as crowd
from tests.support import faulty as faulty
from tests.support import hostile as hostile
from tests.support import limits as limits
from tests.support import messy as messy
from tests.support import retrying as retrying
from tests.support import steered as steered
from tests.support import talking as talking
from tests.support.models import Effect

gates: dict[str, threading.Event] = {}
"""Events by name: a body says where it is, and waits for leave to go on. In this process only."""


def gate(name: str) -> threading.Event:
    return gates.setdefault(name, threading.Event())


def note(label: str, job_id: int | None = None, attempt: int | None = None) -> None:
    Effect.objects.using(jobs_settings().DATABASE).create(label=label, job_id=job_id, attempt=attempt, pid=os.getpid())


@job
def add(a: int, b: int = 0) -> int:
    return a + b


@job
async def aadd(a: int, b: int = 0) -> int:
    await asyncio.sleep(0)
    return a + b


@job(execution="process")
def padd(a: int, b: int = 0) -> int:
    return a + b


@job
def fan_out(depth: int) -> None:
    for _ in range(3 if depth else 0):
        fan_out.enqueue(depth - 1)


@job(takes_context=True)
def leave_mark(context: Context, label: str) -> None:
    note(label, context.job_id, context.attempt)


@job(takes_context=True)
async def aleave_mark(context: Context, label: str) -> None:
    await sync_to_async(note)(label, context.job_id, context.attempt)


@job(execution="process", takes_context=True)
def pleave_mark(context: Context, label: str) -> None:
    note(label, context.job_id, context.attempt)


@job
def first_of(text: str) -> str:
    return text[:1]


@job(takes_context=True)
def hang_in_thread(context: Context, label: str, until: str = "") -> str:
    """Its first attempt runs until the file `until` exists, or for ever; each later one just leaves its mark."""
    note(label, context.job_id, context.attempt)
    while context.attempt == 1 and not (until and Path(until).exists()):
        time.sleep(0.02)
    return "let go"


@job(takes_context=True)
async def hang_on_loop(context: Context, label: str, until: str = "") -> str:
    await sync_to_async(note)(label, context.job_id, context.attempt)
    while context.attempt == 1 and not (until and Path(until).exists()):
        await asyncio.sleep(0.02)
    return "let go"


@job(execution="process", takes_context=True)
def hang_in_process(context: Context, label: str, until: str = "") -> str:
    note(label, context.job_id, context.attempt)
    while context.attempt == 1 and not (until and Path(until).exists()):
        time.sleep(0.02)
    return "let go"


@job(takes_context=True)
async def block_its_sync_thread(context: Context, label: str) -> None:
    """Its first attempt waits for a call that nothing ends, in a thread that is joined when the process ends."""
    await sync_to_async(note)(label, context.job_id, context.attempt)
    if context.attempt == 1:
        await sync_to_async(threading.Event().wait)(600)


@job(takes_context=True)
async def swallow_everything(context: Context, label: str) -> None:
    """Its first attempt ends by nothing that can be raised in it, the end of its coroutine included."""
    await sync_to_async(note)(label, context.job_id, context.attempt)
    gate(f"{label}:in").set()
    while context.attempt == 1:
        try:  # noqa: SIM105 - as people write it
            await asyncio.sleep(1)
        except BaseException:
            pass


@job
async def leave_a_task_behind(label: str) -> None:
    """Completes; a task that it has started goes on, and is one that nothing ends."""

    async def swallow() -> None:
        while True:
            try:  # noqa: SIM105 - as people write it
                await asyncio.sleep(1)
            except BaseException:
                pass

    asyncio.create_task(swallow())  # noqa: RUF006 - nobody keeps it
    await sync_to_async(note)(label)


@job(takes_context=True)
def wait_at_gate(context: Context, name: str) -> str:
    gate(f"{name}:in").set()
    if not gate(name).wait(30):
        raise TimeoutError(f"nobody opened {name}")
    context.check()
    return name


@job(takes_context=True)
async def await_gate(context: Context, name: str) -> str:
    gate(f"{name}:in").set()
    while not gate(name).is_set():
        await asyncio.sleep(0.01)
    return name


@job(takes_context=True)
def wait_until_told(context: Context, name: str) -> None:
    """Cooperates: ends as soon as its context says so."""
    gate(f"{name}:in").set()
    for _ in range(3000):
        context.check()
        time.sleep(0.01)


@job(execution="process", takes_context=True)
def sleep_in_process(context: Context, seconds: float, label: str = "") -> str:
    if label:
        note(label, context.job_id, context.attempt)
    time.sleep(seconds)
    return "slept"


@job(takes_context=True)
def sleep_in_thread(context: Context, seconds: float, label: str = "") -> str:
    if label:
        note(label, context.job_id, context.attempt)
    time.sleep(seconds)
    return "slept"


@job(takes_context=True)
async def sleep_on_loop(context: Context, seconds: float, label: str = "") -> str:
    if label:
        await Effect.objects.using(jobs_settings().DATABASE).acreate(
            label=label, job_id=context.job_id, attempt=context.attempt, pid=os.getpid()
        )
    await asyncio.sleep(seconds)
    return "slept"


@job(execution="process")
def start_grandchild(folder: str) -> None:
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(folder) / "pids").write_text(f"{os.getpid()} {grandchild.pid}")
    grandchild.wait()


class Odd(Exception):
    """Cannot be unpickled: it takes two arguments and hands over one."""

    def __init__(self, a: str, b: str) -> None:
        super().__init__(f"{a}{b}")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _misbehave(how: str) -> Any:
    match how:
        case "ok":
            return "ok"
        case "exit":
            sys.exit(0)
        case "interrupt":
            raise KeyboardInterrupt
        case "stop_iteration":
            raise StopIteration("s")
        case "base":
            raise BaseException("base")
        case "timeout_error":
            raise TimeoutError("upstream")
        case "cancelled_error":
            raise asyncio.CancelledError("own")
        case "nul":
            raise ValueError("a\0b \ud800 c")
        case "huge_message":
            raise ValueError("x" * 50_000_000)
        case "huge_result":
            return "x" * 50_000_000
        case "nul_result":
            return {"k": "a\0b"}
        case "surrogate_result":
            return ["\ud800"]
        case "nan_result":
            return {"loss": float("nan")}
        case "lambda_result":
            return lambda: None
        case "odd":
            raise Odd("a", "b")
        case "mute":
            raise Mute
        case "non_retryable":
            raise NonRetryableError("no use")
        case "cancel_job":
            raise CancelJob("changed my mind")
        case "snooze":
            raise Snooze(3600)
        case "value_error":
            raise ValueError("boom")
        case "future_cancelled":
            raise concurrent.futures.CancelledError("own")
        case "exit_3":
            sys.exit(3)
        case "locked":
            locked = ValueError("holds a lock")
            locked.lock = threading.Lock()  # type: ignore[attr-defined]
            raise locked
        case "local":

            class Local(Exception):
                pass

            raise Local("no module has this class")
    raise AssertionError(how)


@job(retry=RetryPolicy(max_retries=2, base_delay=0, jitter=False))
def misbehave(how: str) -> Any:
    return _misbehave(how)


@job(retry=RetryPolicy(max_retries=2, base_delay=0, jitter=False))
async def amisbehave(how: str) -> Any:
    await asyncio.sleep(0)
    return _misbehave(how)


@job(execution="process", retry=RetryPolicy(max_retries=2, base_delay=0, jitter=False))
def pmisbehave(how: str) -> Any:
    return _misbehave(how)


@job(takes_context=True, retry=RetryPolicy(max_retries=3, base_delay=0, jitter=False))
def fail_twice(context: Context) -> int:
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@job
def fail_with_a_megabyte() -> None:
    ballast = bytearray(1024 * 1024)
    raise ValueError(f"with {len(ballast)} bytes in a local")


@job
async def afail_with_a_megabyte() -> None:
    ballast = bytearray(1024 * 1024)
    raise ValueError(f"with {len(ballast)} bytes in a local")
