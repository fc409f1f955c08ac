from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone, tzinfo

import pytest

from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence.tz_data import digest_of, tz_fingerprint, zone_digest


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


def test_a_fingerprint_is_of_names_and_what_they_mean() -> None:
    assert tz_fingerprint(["UTC", "Europe/Paris"]) == tz_fingerprint(["Europe/Paris", "UTC", "UTC"])
    assert tz_fingerprint(["Europe/Paris"]) != tz_fingerprint(["Europe/Berlin"])
    with pytest.raises(InvalidRule):
        tz_fingerprint(["Nowhere"])


def test_another_process_with_the_same_data_agrees() -> None:
    code = "from jobs.domain.recurrence.tz_data import tz_fingerprint; print(tz_fingerprint())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == tz_fingerprint()
