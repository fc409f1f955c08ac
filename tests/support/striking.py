"""A database that fails, or takes its process with it, at the n-th instant around a statement or a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobs.store.database import Database, Rows


class Died(BaseException):
    """The process ends here: nothing of it handles this, and what it had not committed is rolled back."""


class Points:
    """The instants that a verb passes, in order; at the one numbered `strike_at` (from 1) it goes no further."""

    def __init__(self, strike_at: int = 0, error: Callable[[], BaseException] = Died) -> None:
        self._strike_at = strike_at
        self._error = error
        self.passed: list[str] = []
        self.written = False
        """Whether something was committed before the strike."""

    @property
    def struck(self) -> bool:
        return 0 < self._strike_at == len(self.passed)

    def reach(self, point: str) -> None:
        assert not self.struck, f"went on after {self.passed[-1]}"
        self.passed.append(point)
        if self.struck:
            raise self._error()


def striking(db: Database, points: Points) -> Database:
    """The same database, watched: before and after each statement, before and after each commit."""
    kind = type(db)

    class Striking(kind):  # type: ignore[valid-type, misc]
        def rows(self, sql: str, **parameters: Any) -> Rows:
            found: Rows = self._watched(sql, lambda: kind.rows(self, sql, **parameters))
            return found

        def execute(self, sql: str, **parameters: Any) -> int:
            return int(self._watched(sql, lambda: kind.execute(self, sql, **parameters)))

        def _watched(self, sql: str, send: Callable[[], Any]) -> Any:
            words = " ".join(sql.split())[:60]
            points.reach(f"before: {words}")
            answer = send()
            if not self.connection.in_atomic_block and not sql.lstrip().startswith("SELECT"):
                points.written = True
            points.reach(f"after: {words}")
            return answer

        @contextmanager
        def transaction(self) -> Iterator[None]:
            outermost = not self.connection.in_atomic_block
            with kind.transaction(self):
                yield
                points.reach("before the commit")
            points.written = points.written or outermost
            points.reach("after the commit")

    return Striking(db.alias, db.instant)
