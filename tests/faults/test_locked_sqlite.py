"""SQLite's one lock is held for longer than any lease: no living job is lost, and every outcome is kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connections

import jobs
from jobs import Status
from tests.support import tasks
from tests.support.models import effects
from tests.support.schedulers import scheduler
from tests.support.story import story_of
from tests.support.waiting import pass_time, wait_until

SHORT = {"LEASE": 2, "RENEW": 0.5, "POLL": 0.5}


@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_a_lock_held_for_five_leases_loses_nothing(live_database: str, tmp_path: Path) -> None:
    until, during = tmp_path / "leave", tmp_path / "during"
    hanging = (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)
    with (
        scheduler(live_database, "--name=one", jobs=SHORT) as one,
        scheduler(live_database, "--name=two", jobs=SHORT) as two,
    ):
        living = [task.enqueue("living", str(until)) for task in hanging]
        ending = [task.enqueue("ending", str(during)) for task in hanging[:2]]
        wait_until(lambda: effects(live_database, "living") + effects(live_database, "ending") == 5)
        with closing(sqlite3.connect(connections[live_database].settings_dict["NAME"], timeout=20)) as writer:
            writer.isolation_level = None
            writer.execute("BEGIN IMMEDIATE")
            during.touch()  # these end while nobody can write it down
            pass_time(5 * SHORT["LEASE"])
            writer.execute("ROLLBACK")
        wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in ending))
        pass_time(4 * SHORT["RENEW"])  # whoever would take the others away has looked twice by now
        until.touch()
        wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in living))
        assert one.running and two.running
    rows = [*living, *ending]
    assert {(jobs.get(row).attempts, jobs.get(row).losses) for row in rows} == {(1, 0)}, [*map(story_of, rows)]
