"""The few numbers that a child process and its parent tell each other without waiting, in shared memory."""

from __future__ import annotations

import ctypes
from multiprocessing.context import BaseContext

from jobs.domain.stop import StopReason

SETTING_UP, READY, UNUSABLE = 0, 1, 2

_REASONS = (StopReason.TIMEOUT, StopReason.CANCEL, StopReason.INTERRUPT, StopReason.LEASE_LOST)


class Board(ctypes.Structure):
    """Aligned 64-bit fields: each has one writer, and is written in one piece. 0 is nobody: attempt ids start at 1."""

    _fields_ = (
        ("pid", ctypes.c_int64),
        ("state", ctypes.c_int64),
        ("began", ctypes.c_int64),
        ("began_pid", ctypes.c_int64),
        ("stop_attempt", ctypes.c_int64),
        ("stop_reason", ctypes.c_int64),
    )

    pid: int
    """The child, which leads a process group of this number."""
    state: int
    began: int
    """The attempt whose body was begun last."""
    began_pid: int
    """The child that did; `pid` may be its successor's by now."""
    stop_attempt: int
    stop_reason: int

    def ask_to_stop(self, attempt_id: int, reason: StopReason) -> None:
        # The reason first: who finds the attempt finds why.
        self.stop_reason = _REASONS.index(reason)
        self.stop_attempt = attempt_id

    def stop_asked(self, attempt_id: int) -> StopReason | None:
        return _REASONS[self.stop_reason] if self.stop_attempt == attempt_id else None


def new_board(context: BaseContext) -> Board:
    """A blank board that can be handed to one child at its start."""
    board: Board = context.RawValue(Board)
    return board
