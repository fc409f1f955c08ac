"""Guards the fork server, which imports this first: it outlives the scheduler's signals, not the scheduler.

The fork server ends by itself only when all its children have; and while it is alive nobody else notices that the
scheduler was killed in the middle of a body that holds the interpreter lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals) -> None:
    """Have the kernel send this process a signal when the thread that started it ends. Linux only."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def guard() -> None:
    """Turn this process into a guarded fork server."""
    server, scheduler = os.getpid(), os.getppid()

    def on_terminate(number: int, frame: FrameType | None) -> None:
        if os.getpid() != server:
            os._exit(0)  # a child that has not set its own handler yet
        # systemd and `kill -- -group` send SIGTERM to everybody: who stops is the scheduler's choice. The kernel sends
        # it too when the thread that started us ends, which is nothing as long as the scheduler is there.
        if os.getppid() != scheduler:
            _kill_children(server)
            os._exit(0)

    # Own session: no Ctrl-C from a terminal, here and in children that are not yet in sessions of their own.
    with contextlib.suppress(PermissionError):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # whoever started us held it back until here
    signal.signal(signal.SIGTERM, on_terminate)
    die_with_parent(signal.SIGTERM)


def _kill_children(server: int) -> None:
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
            with contextlib.suppress(OSError):
                os.killpg(int(child), signal.SIGKILL)


# Imported anywhere else (by a test, a documentation tool) it must not touch the process.
if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    guard()
