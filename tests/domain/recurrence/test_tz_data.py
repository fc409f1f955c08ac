from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone, tzinfo

from jobs.domain.recurrence.tz_data import digest_of, zone_digest


class Changing(tzinfo):
    """An hour more from one instant on."""

    def __init__(self, change: datetime) -> None:
        self._change = change

    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(hours=1 if at is not None and at.replace(tzinfo=timezone.utc) >= self._change else 0)

    def dst(self, at: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, at: datetime | None) -> str:
        return "changing"

    def fromutc(self, at: datetime) -> datetime:
        return at + timedelta(hours=1 if at.replace(tzinfo=timezone.utc) >= self._change else 0)


LAW = datetime(2026, 11, 1, 9, tzinfo=timezone.utc)


def test_a_law_that_moves_a_change_of_clocks_by_a_minute_is_noticed() -> None:
    assert digest_of(Changing(LAW)) == digest_of(Changing(LAW))
    assert digest_of(Changing(LAW)) != digest_of(Changing(LAW + timedelta(minutes=1)))


def test_zones_that_mean_the_same_agree_and_others_do_not() -> None:
    assert zone_digest("Europe/Berlin") == zone_digest("Europe/Paris")
    assert zone_digest("Europe/Berlin") != zone_digest("Europe/London")
    assert zone_digest("UTC") != zone_digest("Europe/London")


def test_another_process_with_the_same_data_agrees() -> None:
    code = "from jobs.domain.recurrence.tz_data import zone_digest; print(zone_digest('America/Vancouver'))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == zone_digest("America/Vancouver")
