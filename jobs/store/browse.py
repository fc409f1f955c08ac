"""Browse the records for people: small bounded reads that lock nothing."""

from __future__ import annotations

from jobs.store.database import Database


def exception_classes(db: Database, *, limit: int) -> list[str]:
    """The first `limit` exception classes that ever failed an attempt, in alphabetical order.

    Steps from one class to the next through the index, so it reads `limit` entries and not every failure.
    """
    rows = db.rows(
        """
        WITH RECURSIVE known (name, number) AS (
            SELECT min(exception_class), 1 FROM jobs_failure
            UNION ALL
            SELECT (SELECT min(exception_class) FROM jobs_failure WHERE exception_class > known.name), number + 1
            FROM known WHERE known.name IS NOT NULL AND number < %(limit)s
        )
        SELECT name FROM known WHERE name IS NOT NULL
        """,
        limit=limit,
    )
    return [row[0] for row in rows]
