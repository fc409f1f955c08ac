"""One cheap look at whether there is anything to do: what an idle dispatcher sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.store.count import any_pending
from jobs.store.database import Database


@dataclass(frozen=True, slots=True)
class Facts:
    ready: bool
    """A job in the asked queues is pending."""
    expired: bool
    due_in: float | None
    """Seconds until the first waiting job is due; negative when it is overdue; None when nothing waits for a time."""

    @property
    def anything(self) -> bool:
        return self.ready or self.expired or (self.due_in is not None and self.due_in <= 0)


def look(db: Database, queues: Sequence[str]) -> Facts:
    """One statement over partial indexes. Locks nothing."""
    pending, parameters = any_pending(queues)
    ready, expired, due_at, now = db.rows(
        f"""
        SELECT {pending},
               EXISTS (
                   SELECT 1 FROM jobs_job WHERE status IN ('blocked', 'scheduled', 'pending', 'retry_wait')
                   AND expires_at IS NOT NULL AND started_at IS NULL AND expires_at <= {db.now}
               ),
               (SELECT run_at FROM jobs_job WHERE status IN ('scheduled', 'retry_wait') ORDER BY run_at LIMIT 1),
               {db.now}
        """,
        **parameters,
    )[0]
    due, at = db.read_instant(due_at), db.read_instant(now)
    assert at is not None
    return Facts(bool(ready), bool(expired), None if due is None else (due - at).total_seconds())
