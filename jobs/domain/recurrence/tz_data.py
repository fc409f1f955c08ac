"""What this process believes about zones, as digests: two processes that differ would fire one schedule twice.

The tz database changes several times a year (IANA 2025b and 2026f disagree on Vancouver from autumn 2026), Python
reads whichever copy it finds first, and zoneinfo does not tell its version. So the digest is of what the data says,
not of its files: two copies that mean the same agree, however they were compiled.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from jobs.domain.recurrence.zone import zone_of

FROM = datetime(2025, 1, 1, tzinfo=timezone.utc)
UNTIL = datetime(2037, 1, 1, tzinfo=timezone.utc)
"""Fixed, so that processes which start on different days agree."""

STRIDE = timedelta(days=28)
"""Shorter than any season of clocks: the shortest, Morocco's around Ramadan, lasts five weeks."""

MINUTE = timedelta(minutes=1)
"""All transitions of these years are on whole minutes."""


@lru_cache(maxsize=1024)
def zone_digest(name: str) -> str:
    """16 hex digits for one zone's offsets from 2025 to 2036. Takes about a millisecond, once."""
    return digest_of(zone_of(name))


def digest_of(zone: tzinfo) -> str:
    def offset(at: datetime) -> timedelta | None:
        return at.astimezone(zone).utcoffset()

    at, now = FROM, offset(FROM)
    told = [f"{now}"]
    while at < UNTIL:
        following = min(at + STRIDE, UNTIL)
        if offset(following) != now:
            low, high = at, following
            while high - low > MINUTE:
                middle = low + (high - low) // MINUTE // 2 * MINUTE
                low, high = (middle, high) if offset(middle) == now else (low, middle)
            now = offset(high)
            told.append(f"{high:%Y-%m-%dT%H:%M} {now}")
            following = high
        at = following
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
