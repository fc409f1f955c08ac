"""Many schedulers of one release start at the same instant: its schedules are declared once, and all know it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import every, job
from jobs.declared import sync_declared
from jobs.domain.registry import registry
from jobs.models import Release, Schedule
from tests.support.at_once import at_once


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    @job(name="tests.report", schedule=[every(minutes=15, name="quarter"), every(hours=1, name="hour")])
    def report() -> None: ...

    yield
    registry.remove("tests.report")


@pytest.mark.parametrize("before", [[], ["an older release"]], ids=["the first release", "a newer one"])
def test_schedulers_that_start_at_once_agree_on_their_release(live_database: str, before: list[str]) -> None:
    for declarations in before:
        Release.objects.using(live_database).create(declarations=declarations)
    assert at_once(live_database, lambda _: sync_declared(), threads=8) == [True] * 8
    assert Release.objects.using(live_database).count() == len(before) + 1
    assert Schedule.objects.using(live_database).filter(name__in=["quarter", "hour"]).count() == 2
