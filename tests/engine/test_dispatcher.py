"""What the dispatcher claims ahead of its slots, and what it does with it when a job takes longer than thought."""

from __future__ import annotations

from pathlib import Path

import jobs
from jobs.models import Job
from tests.support import steered
from tests.support.engine import running
from tests.support.steered import open_door, wait_for_begin
from tests.support.story import assert_sound
from tests.support.waiting import wait_until


def learn_that_it_is_quick(alias: str) -> None:
    for _ in range(10):
        steered.steer.enqueue("complete")
    wait_until(lambda: not Job.objects.using(alias).exclude(status="completed").exists(), timeout=15)


def test_what_waits_behind_a_long_job_is_handed_back_and_left_to_others(live_database: str, tmp_path: Path) -> None:
    claims: list[int] = []
    with running(threads=1, claim_ahead=0.5, hand_back_after=0.05, poll=0.05) as scheduler:
        learn_that_it_is_quick(live_database)
        stays = steered.steer.enqueue("stay", str(tmp_path))
        wait_for_begin(tmp_path, stays)
        scheduler.add_listener(lambda move: claims.append(move.job_id) if move.new == "running" else None)
        behind = [steered.steer.enqueue("complete") for _ in range(3)]
        assert not scheduler.join(1.0)
        assert {jobs.get(row).status for row in behind} == {"pending"}
        few = len(claims)
        assert not scheduler.join(1.0)
        # Claiming them again and again would keep them from every other process.
        assert len(claims) == few
        with running(threads=1, poll=600.0):
            wait_until(lambda: {jobs.get(row).status for row in behind} == {"completed"}, timeout=10)
        open_door(tmp_path)
        assert scheduler.join(10)
    assert {jobs.get(row).attempts for row in behind} == {1}
    assert_sound(live_database)
