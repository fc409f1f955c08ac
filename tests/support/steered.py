"""One body in three executions, steered by its arguments: what tests ask of every model alike."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import CancelJob, Context, Execution, NonRetryableError, RetryPolicy, Snooze, Task, job
from jobs.models import Job
from tests.support import surroundings
from tests.support.waiting import wait_until

AT_ONCE = RetryPolicy(base_delay=0)
LONGEST_STAY = 60.0
"""Seconds after which a body ends whatever happens, so that a failed test leaves nothing behind."""
LOOK_EVERY = 0.01


def trace(folder: str | Path, job_id: int, attempt: int = 1) -> Path:
    """The file that a body leaves when it has begun."""
    return Path(folder, f"{job_id}-{attempt}")


def wait_for_begin(folder: str | Path, row: Job, attempt: int = 1) -> None:
    wait_until(trace(folder, row.pk, attempt).exists, what=f"job {row.pk}, attempt {attempt} has begun")


def open_door(folder: str | Path) -> None:
    """Let every body that stays in this folder return."""
    Path(folder, "open").touch()


def _looks(folder: str) -> Iterator[None]:
    """One item per look, until the door is open."""
    give_up_at = time.monotonic() + LONGEST_STAY
    while not Path(folder, "open").exists():
        assert time.monotonic() < give_up_at, f"nobody opened {folder}"
        yield


def _stays(context: Context, how: str, folder: str) -> bool:
    """Whether the body is to stay; raises what the test asked for."""
    if folder:
        trace(folder, context.job_id, context.attempt).touch()
    match how:
        case "fail":
            raise ValueError("boom")
        case "fail_twice" if context.attempt < 3:
            raise ValueError(f"attempt {context.attempt}")
        case "snooze_once" if context.attempt == 1:
            raise Snooze(0.05)
        case "snooze":
            raise Snooze(0)
        case "cancel_itself":
            raise CancelJob("changed my mind")
        case "give_up":
            raise NonRetryableError("no use")
    return how in ("stay", "deaf", "cling") or (how in ("stay_once", "deaf_once") and context.attempt == 1)


@job(takes_context=True, retry=AT_ONCE)
def steer(context: Context, how: str, folder: str = "") -> int:
    """`stay` asks its context, `deaf` does not."""
    if _stays(context, how, folder):
        for _ in _looks(folder):
            if how not in ("deaf", "deaf_once", "cling"):
                context.check()
            time.sleep(LOOK_EVERY)
    return context.attempt


@job(takes_context=True, retry=AT_ONCE)
async def asteer(context: Context, how: str, folder: str = "") -> int:
    """`cling` swallows the cancellation of its task."""
    if _stays(context, how, folder):
        for _ in _looks(folder):
            try:
                await asyncio.sleep(LOOK_EVERY)
            except asyncio.CancelledError:
                if how != "cling":
                    raise
    return context.attempt


@job(execution="process", takes_context=True, retry=AT_ONCE)
def psteer(context: Context, how: str, folder: str = "") -> int:
    if _stays(context, how, folder):
        for _ in _looks(folder):
            try:
                time.sleep(LOOK_EVERY)
            except BaseException:
                if how != "cling":
                    raise
    return context.attempt


@job(execution="process")
def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job
def look_around() -> dict[str, Any]:
    return surroundings.report()


@job
async def alook_around() -> dict[str, Any]:
    return surroundings.report()


@job(execution="process")
def plook_around() -> dict[str, Any]:
    return surroundings.report()


@job
def disturb() -> None:
    surroundings.disturb()


@job
async def adisturb() -> None:
    surroundings.disturb()


@job(execution="process")
def pdisturb() -> None:
    surroundings.disturb()


@dataclass(frozen=True, slots=True)
class Model:
    """The tasks of one execution."""

    execution: Execution
    steer: Task[..., Any]
    look_around: Task[[], Any]
    disturb: Task[[], Any]

    @property
    def slots(self) -> dict[str, int]:
        """For `running`: no process where none is needed."""
        return {"processes": 1} if self.execution is Execution.PROCESS else {}


MODELS = (
    Model(Execution.THREAD, steer, look_around, disturb),
    Model(Execution.ASYNC, asteer, alook_around, adisturb),
    Model(Execution.PROCESS, psteer, plook_around, pdisturb),
)
