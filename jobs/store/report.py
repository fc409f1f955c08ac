"""Report moves to this process's listeners after the commit that made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobs.domain.move import Move, listeners
from jobs.store.database import Database


def report(db: Database, make_moves: Callable[[], Sequence[Move]]) -> None:
    """`make_moves` is called only when somebody listens: the hot path pays nothing otherwise."""
    if listeners:
        moves = make_moves()
        if moves:
            db.after_commit(lambda: listeners.report(moves))
