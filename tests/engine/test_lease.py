"""A worker whose lease is lost stops, and nothing of its run counts any more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

import jobs
from jobs import RetryPolicy
from jobs.models import Attempt, Job
from jobs.store.database import database
from jobs.store.reclaim import overdue, reclaim
from tests.support import steered
from tests.support.engine import running
from tests.support.steered import Model, open_door, wait_for_begin
from tests.support.story import Story, assert_sound, attempts_of, story_of
from tests.support.waiting import wait_until


def take_away(alias: str, row: Job) -> None:
    """What another scheduler does once it has looked twice at a lease that is over."""
    later = database(alias, timezone.now() + timedelta(hours=1))
    (attempt,) = attempts_of(jobs.get(row))
    # Its worker renews it meanwhile: a lease that has moved since the look is left alone.
    wait_until(lambda: reclaim(later, overdue(later)) == [attempt.pk], timeout=10)


def test_a_run_whose_lease_is_lost_is_stopped_and_its_job_runs_again_in_a_process(
    live_database: str, model: Model, tmp_path: Path
) -> None:
    with running(processes=2, lease=2.0, renew=0.1) as scheduler:
        row = model.steer.enqueue("stay_once", str(tmp_path))
        wait_for_begin(tmp_path, row)
        take_away(live_database, row)
        assert scheduler.join(30)
        assert scheduler.in_flight.in_flight() == 0
    job = jobs.get(row)
    assert story_of(row) == Story("completed", ["lost", "completed"], [], 2)
    assert (job.losses, job.failures, job.execution) == (1, 0, "process")
    assert_sound(live_database)


def test_the_success_of_a_lost_run_is_discarded(
    live_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(processes=1, lease=60.0, renew=20.0) as scheduler:
        row = steered.steer.enqueue("stay_once", str(tmp_path))
        wait_for_begin(tmp_path, row)
        take_away(live_database, row)
        open_door(tmp_path)  # before the worker hears of its loss
        assert scheduler.join(30)
    assert story_of(row) == Story("completed", ["lost", "completed"], [], 2)
    assert "the lease is lost, its outcome (completed) is discarded" in caplog.text


def test_a_lost_at_most_once_job_fails_as_outcome_unknown(live_database: str, tmp_path: Path) -> None:
    retries = RetryPolicy(max_retries=3, base_delay=0)
    with running(processes=1, lease=2.0, renew=0.1) as scheduler:
        row = steered.steer.using(at_most_once=True, retry=retries).enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        take_away(live_database, row)
        assert scheduler.join(30)
    assert story_of(row) == Story("failed", ["lost"], ["OutcomeUnknown"])


def test_a_lease_is_renewed_while_its_job_runs(live_database: str, tmp_path: Path) -> None:
    with running(lease=0.5, renew=0.1) as scheduler:
        row = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, row)
        first = Attempt.objects.using(live_database).get().lease_until
        # Long enough for the housekeeper to look twice at a lease that nobody renewed.
        wait_until(
            lambda: Attempt.objects.using(live_database).get().lease_until > first + timedelta(seconds=1), timeout=10
        )
        assert Attempt.objects.using(live_database).get().started_at is not None
        open_door(tmp_path)
        assert scheduler.join(10)
    assert story_of(row) == Story("completed", ["completed"], [], 1)


def test_a_process_that_dies_unasked_is_lost_at_once_and_gives_up_in_the_end(live_database: str) -> None:
    row = steered.die.using(max_lost=1).enqueue()
    neighbour = steered.psteer.enqueue("complete")
    with running(processes=2) as scheduler:
        assert scheduler.join(30)
    job = jobs.get(row)
    assert story_of(row) == Story("failed", ["lost"] * 2, ["WorkerDied"])
    assert (job.losses, job.failures, job.cause) == (2, 0, "worker died")
    assert jobs.get(neighbour).status == "completed"


def test_an_at_most_once_process_that_dies_is_not_run_again(live_database: str) -> None:
    row = steered.die.using(at_most_once=True).enqueue()
    with running(processes=1) as scheduler:
        assert scheduler.join(30)
    assert story_of(row) == Story("failed", ["lost"], ["OutcomeUnknown"])
