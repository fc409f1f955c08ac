"""Where a task's function runs: an async loop, a thread, or a killable child process."""

from __future__ import annotations

import enum


class Execution(str, enum.Enum):
    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"

    __str__ = str.__str__
