"""Every slot of an execution held by calls that do not return: it is said, and another process runs the rest."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import jobs
from jobs import RetryPolicy
from jobs.models import Attempt, Job
from tests.support import steered, tasks
from tests.support.engine import running
from tests.support.steered import open_door
from tests.support.waiting import wait_until

SLOTS = 4
LOGGER = "jobs.engine.stuck_slots"


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(level, text) for name, level, text in caplog.record_tuples if name == LOGGER]


def test_slots_that_are_all_stuck_are_told_of_and_another_process_runs_what_waits(
    live_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    with running(threads=SLOTS) as stuck:
        rows = [steered.steer.using(timeout=0.1).enqueue("deaf", str(tmp_path)) for _ in range(SLOTS)]
        closed = Attempt.objects.using(live_database).filter(lingering_until__isnull=False)
        wait_until(lambda: closed.count() == SLOTS, timeout=15)
        waiting = [tasks.add.enqueue(number) for number in range(20)]
        explanation = jobs.explain(waiting[-1])
        assert explanation.reason == "stuck"
        assert "every thread slot of its live workers is held by a call that does not return" in str(explanation)
        ((level, text),) = said(caplog)
        assert level == logging.WARNING and text.startswith(f"every thread slot ({SLOTS}) is held by a call")
        with running(threads=1):
            assert jobs.explain(waiting[-1]).reason != "stuck"
            done = Job.objects.using(live_database).filter(status="completed")
            wait_until(lambda: done.count() == len(waiting), timeout=15)
        assert stuck.in_flight.busy(jobs.Execution.THREAD) == SLOTS
        assert len(said(caplog)) == 1
        open_door(tmp_path)
        assert stuck.join(10)
    assert [level for level, _ in said(caplog)] == [logging.WARNING, logging.INFO]
    assert {jobs.get(row).status for row in rows} == {"timed_out"}


def test_slots_of_the_loop_are_told_of_as_well_and_one_free_slot_is_no_alarm(
    live_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    with running(async_slots=2, cancel_grace=0.1) as scheduler:
        task = steered.asteer.using(timeout=0.1, retry=RetryPolicy(max_retries=0))
        first = task.enqueue("cling", str(tmp_path))
        wait_until(lambda: jobs.get(first).status == "timed_out", timeout=15)
        assert said(caplog) == []
        task.enqueue("cling", str(tmp_path))
        wait_until(lambda: len(said(caplog)) == 1, timeout=15)
        assert said(caplog)[0][1].startswith("every async slot (2) is held")
        open_door(tmp_path)
        assert scheduler.join(10)
    assert said(caplog)[1:] == [(logging.INFO, "a call has returned: there is a free async slot again")]


def test_calls_that_a_stop_gives_up_are_no_alarm(
    live_database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    with running(threads=1) as scheduler:
        row = steered.steer.enqueue("deaf", str(tmp_path))
        steered.wait_for_begin(tmp_path, row)
        scheduler.stop(timeout=0.0)
        open_door(tmp_path)
    assert said(caplog) == []
