"""The clock of the tables."""

from __future__ import annotations

from datetime import datetime, timezone

from django.db import connections


def database_now(using: str) -> datetime:
    """The database's clock on PostgreSQL; SQLite's is the host's."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return datetime.now(timezone.utc)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now.astimezone(timezone.utc) if now.tzinfo else now.replace(tzinfo=timezone.utc)
