"""What one job leaves behind never reaches the next: surroundings, transactions, connections."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

import jobs
from jobs.conf import jobs_settings
from jobs.models import Job
from jobs.testing import run_jobs
from tests.support import messy, surroundings
from tests.support.engine import running
from tests.support.models import Effect
from tests.support.steered import Model
from tests.support.story import Story, failure_of, story_of


def completed(rows: list[Job]) -> list[Any]:
    with running(threads=1, async_slots=1, processes=1) as scheduler:
        assert scheduler.join(30)
    assert {jobs.get(row).status for row in rows} == {"completed"}
    return [jobs.get(row).result for row in rows]


def test_language_time_zone_and_context_variables_of_one_job_do_not_reach_the_next(
    live_database: str, model: Model
) -> None:
    rows = [model.look_around.enqueue(), model.disturb.enqueue(), model.look_around.enqueue()]
    first, _, second = completed(rows)
    assert first == second
    assert second["mark"] == "clean" and second["zone"] != "Asia/Tokyo" and second["precision"] == 28


def test_they_do_not_reach_the_caller_of_run_jobs(database: str, model: Model) -> None:
    before = surroundings.report()
    row = model.disturb.enqueue()
    run_jobs()
    assert jobs.get(row).status == "completed"
    assert surroundings.report() == before


@pytest.mark.parametrize(
    "task", [messy.leave_transaction_open, messy.aleave_transaction_open, messy.turn_autocommit_off]
)
def test_a_job_that_leaves_a_transaction_open_fails_saying_so_and_the_next_is_clean(
    live_database: str, task: Any
) -> None:
    bad = task.enqueue(live_database)
    good = [messy.write.enqueue(live_database), messy.awrite.enqueue(live_database)]
    with running(threads=1, async_slots=1) as scheduler:
        assert scheduler.join(30)
    assert story_of(bad) == Story("failed", ["failed"], ["TransactionLeftOpen"])
    assert f"a transaction open on {live_database}" in failure_of(jobs.get(bad)).message
    assert [story_of(row).status for row in good] == ["completed"] * 2
    assert sorted(Effect.objects.using(live_database).values_list("label", flat=True)) == ["written", "written"]


@pytest.mark.parametrize("task", [messy.raise_in_transaction, messy.break_transaction, messy.abreak_transaction])
def test_a_job_that_breaks_its_transaction_fails_as_what_it_raised_and_the_next_is_clean(
    live_database: str, task: Any
) -> None:
    bad = task.enqueue(live_database)
    good = [messy.write.enqueue(live_database), messy.awrite.enqueue(live_database)]
    with running(threads=1, async_slots=1) as scheduler:
        assert scheduler.join(30)
    assert story_of(bad).status == "failed"
    assert story_of(bad).exceptions[0] in ("IntegrityError", "ValueError")
    assert [story_of(row).status for row in good] == ["completed"] * 2
    assert Effect.objects.using(live_database).count() == 2


@pytest.mark.parametrize("task", [messy.close_connection, messy.close_under_django, messy.aclose_under_django])
def test_a_connection_that_a_job_closed_heals(live_database: str, task: Any) -> None:
    rows = [task.enqueue(live_database), messy.write.enqueue(live_database), messy.awrite.enqueue(live_database)]
    with running(threads=1, async_slots=1) as scheduler:
        assert scheduler.join(30)
    assert [story_of(row).status for row in rows] == ["completed"] * 3
    assert Effect.objects.using(live_database).count() == 2


def test_the_engine_goes_on_when_a_job_closes_every_connection_it_can_reach(live_database: str) -> None:
    rows = [messy.close_all.enqueue(), messy.write.enqueue(live_database)]
    with running(threads=1) as scheduler:
        assert scheduler.join(30)
        assert scheduler.dead_loops == []
    assert [story_of(row).status for row in rows] == ["completed"] * 2


def test_each_async_job_has_a_sync_thread_of_its_own_and_its_connection_is_closed(live_database: str) -> None:
    rows = [messy.athread.enqueue(live_database) for _ in range(5)]
    with running(async_slots=5) as scheduler:
        assert scheduler.join(30)
    results = [jobs.get(row).result for row in rows]
    assert len({result["thread"] for result in results}) == 5
    if connections[live_database].vendor == "postgresql":
        with connections[jobs_settings().DATABASE].cursor() as cursor:
            pids = [result["backend"] for result in results]
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)", [pids])
            assert cursor.fetchone() == (0,)
