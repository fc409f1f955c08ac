"""Processes that fire are killed between the insert of a job and the move of its schedule, or anywhere else."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import timedelta

import pytest

from jobs.models import Job, Schedule
from tests.support.processes import run_process
from tests.support.schedulers import url_of
from tests.support.schedules import Diary
from tests.support.store import START

INTERVALS = (7, 11, 30, 60)


def none_is_lost_and_none_doubled(alias: str, *, seed: int, kills: int) -> None:
    diary = Diary(alias)
    for seconds in INTERVALS:
        diary.schedule(name=str(seconds), interval_seconds=seconds, overlap="allow", catch_up="all", catch_up_cap=100)
    environment = {"DATABASE_URL": url_of(alias), "DJANGO_SETTINGS_MODULE": "tests.settings_process"}
    command = [sys.executable, "-m", "tests.support.victims", str(seed), str(kills)]
    with run_process(command, environment=environment) as process:
        reached = int(process.wait_for(r"killed .*; fired until (\d+)", 30 + kills)[1])
        assert process.wait() == 0, process.output
    made = Counter(Job.objects.using(alias).values_list("schedule_id", "scheduled_for"))
    ids = {int(row.name): row.pk for row in Schedule.objects.using(alias)}
    assert reached >= 60 and made == Counter(
        (ids[seconds], START + timedelta(seconds=at))
        for seconds in INTERVALS
        for at in range(seconds, reached + 1, seconds)
    )


def test_killed_planners_lose_and_double_nothing(live_database: str) -> None:
    none_is_lost_and_none_doubled(live_database, seed=1, kills=20)


@pytest.mark.slow
def test_two_hundred_killed_planners_lose_and_double_nothing(live_database: str) -> None:
    none_is_lost_and_none_doubled(live_database, seed=2, kills=200)
