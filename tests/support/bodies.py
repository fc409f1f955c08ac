"""Bodies that tests run in child processes; every one takes the context first, and a folder to leave traces in."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.context import Context
from jobs.domain.options import task_options
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.stop import StopSignal
from jobs.domain.task import define
from jobs.engine.body import Body, run

FOREVER = 600


def run_here(claim: Claim, context: Context, stop: StopSignal) -> Outcome:
    """The runner of these tests: the claim's task names a function of this module."""
    options = task_options(takes_context=True)
    return run(Body(claim, define(globals()[claim.task], options=options), context, stop, random.Random(1)))


def run_badly(claim: Claim, context: Context, stop: StopSignal) -> Outcome:
    """A runner with a bug: its outcome is no plain data."""
    return Outcome(Ending.COMPLETED, result=object())  # type: ignore[arg-type]


def _leave(folder: str, name: str, text: object = "") -> None:
    """A trace that appears all at once."""
    unfinished = Path(folder, f".{name}")
    unfinished.write_text(str(text))
    unfinished.rename(Path(folder, name))


def pid(context: Context) -> int:
    return os.getpid()


def fail(context: Context) -> None:
    raise LookupError("nothing there")


def exit_at_once(context: Context, code: int) -> None:
    os._exit(code)


def kill_itself(context: Context) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_its_group(context: Context) -> None:
    os.kill(0, signal.SIGKILL)


def wait_for(context: Context, folder: str, name: str) -> str:
    """Runs until a file of that name is there."""
    _leave(folder, f"waiting-{context.job_id}", os.getpid())
    while not Path(folder, name).exists():
        time.sleep(0.01)
    return "seen"


def sleep_with_grandchild(context: Context, folder: str) -> None:
    """Leaves `grandchild`, the pid of a program that ignores SIGTERM."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    grandchild = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert grandchild.stdout is not None
    grandchild.stdout.readline()
    _leave(folder, "grandchild", grandchild.pid)
    _leave(folder, "child", os.getpid())
    time.sleep(FOREVER)


def die_beside_grandchild(context: Context, folder: str) -> None:
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _leave(folder, "grandchild", grandchild.pid)
    os._exit(1)


def sleep_with_pool(context: Context, folder: str) -> None:
    """Leaves `grandchild`, the pid of a multiprocessing child started the default way."""
    helper = multiprocessing.Process(target=time.sleep, args=(FOREVER,))
    helper.start()
    _leave(folder, "grandchild", helper.pid)
    time.sleep(FOREVER)


def end_helper(context: Context) -> int | None:
    """Ends a helper process with SIGTERM, as anybody would."""
    helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(FOREVER,))
    helper.start()
    helper.terminate()
    helper.join()
    return helper.exitcode


def sleep_with_finally(context: Context, folder: str) -> None:
    try:
        _leave(folder, "begun")
        time.sleep(FOREVER)
    finally:
        _leave(folder, "cleaned-up")


def ignore_everything(context: Context, folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _leave(folder, "begun", os.getpid())
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(FOREVER)


def hold_the_interpreter(context: Context, folder: str) -> int:
    _leave(folder, "child", os.getpid())
    return sum(range(10**12))


def succeed_when_asked_to_stop(context: Context, folder: str) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _leave(folder, "begun")
    while not context.cancelled:
        time.sleep(0.01)
    return "done all the same"


def touch(context: Context, folder: str) -> None:
    _leave(folder, f"touched-{context.job_id}")


def fork_and_return(context: Context) -> int:
    """The pid of the copy, which returns too."""
    return os.fork()


def report(context: Context, steps: int) -> None:
    for step in range(1, steps + 1):
        context.progress(step, steps, "é" * 200)


def leave_alarm(context: Context) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def nap(context: Context, seconds: float) -> None:
    time.sleep(seconds)


def database_name(context: Context) -> Any:
    return str(connections.settings["default"]["NAME"])


def succeed_unsignalled(context: Context, folder: str) -> int:
    """Asked to stop, it succeeds; it does not get the signal, and whoever comes after it gets the next one."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _leave(folder, "begun")
    while not context.cancelled:
        time.sleep(0.01)
    signal.signal(signal.SIGTERM, before)
    return os.getpid()


class ExitWhenRead:
    """An argument that ends the process which reads it, with 0, for the first time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return exit_for_the_first_time, (self._folder,)


def exit_for_the_first_time(folder: str) -> None:
    if not Path(folder, "was-here").exists():
        _leave(folder, "was-here")
        os._exit(0)


def take(context: Context, argument: object) -> str:
    return "taken"
