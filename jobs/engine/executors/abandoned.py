"""End what is left on an event loop that is about to close, and keep for ever what will not end."""

from __future__ import annotations

import asyncio
import ctypes

LAST_SECONDS = 0.3


def wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """In the loop's own thread. Also ends tasks that jobs have started and left behind."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    until = loop.time() + LAST_SECONDS
    while left and loop.time() < until:
        try:
            loop.run_until_complete(asyncio.wait(left, timeout=until - loop.time()))
            break
        except BaseException:  # noqa: BLE001 - SystemExit of one task, which goes through the loop
            continue
    for task in asyncio.all_tasks(loop):
        _never_collect(task)


def _never_collect(task: asyncio.Task[object]) -> None:
    # A coroutine that is collected runs once more, by GeneratorExit. One that swallows this, in a loop, never comes
    # back; when the interpreter is ending no signal and no other thread can stop it. A reference of ours would go
    # then, with every module: this one does not.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))
