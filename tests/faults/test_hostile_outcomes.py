"""What a body raises, returns, logs or reports may fight back: it is one recorded outcome, and neighbours go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import jobs
from jobs import Execution
from jobs.models import Attempt, Job
from jobs.store.database import database
from jobs.store.verify import verify
from tests.support import hostile, tasks
from tests.support.engine import running
from tests.support.steered import MODELS, Model
from tests.support.story import Story, attempts_of, failure_of, story_of
from tests.support.waiting import wait_until

FIGHTS: dict[Execution, Any] = {
    Execution.THREAD: hostile.fight,
    Execution.ASYNC: hostile.afight,
    Execution.PROCESS: hostile.pfight,
}
TALKS: dict[Execution, Any] = {
    Execution.THREAD: hostile.talk,
    Execution.ASYNC: hostile.atalk,
    Execution.PROCESS: hostile.ptalk,
}


@pytest.fixture(params=MODELS, ids=lambda model: model.execution.value)
def model(request: pytest.FixtureRequest) -> Model:
    chosen: Model = request.param
    return chosen


def test_an_exception_that_fights_back_is_one_failure_of_each_attempt(live_database: str, model: Model) -> None:
    rows = {how: FIGHTS[model.execution].enqueue(how) for how in hostile.RAISES}
    neighbours = [model.steer.enqueue("complete") for _ in range(5)]
    with running(**model.slots) as scheduler:
        assert scheduler.join(60), {how: story_of(row) for how, row in rows.items()}
        assert (scheduler.in_flight.in_flight(), scheduler.dead_loops) == (0, [])
    stories = {how: story_of(row) for how, row in rows.items()}
    cancelled = stories.pop("wide_cancel")
    assert (cancelled.status, cancelled.outcomes) == ("cancelled", ["cancelled"])
    given_up = stories.pop("give_up")
    assert (given_up.status, given_up.outcomes) == ("failed", ["failed"])
    assert {how: (story.status, story.outcomes) for how, story in stories.items()} == dict.fromkeys(
        stories, ("failed", ["failed"] * 3)
    )
    assert stories["fights"].exceptions == ["Fights"] * 3
    assert stories["traceless"].exceptions == ["Traceless"] * 3
    for row in rows.values():
        for attempt in attempts_of(jobs.get(row)):
            assert attempt.ended_at is not None
            assert attempt.ended_at - attempt.claimed_at < timedelta(seconds=5)
    assert len(failure_of(jobs.get(rows["group"])).traceback.encode()) <= 64 * 1024
    assert [story_of(row).status for row in neighbours] == ["completed"] * 5
    assert list(verify(database(live_database), overdue_seconds=0.0)) == []


def test_a_result_that_fights_back_does_not_run_the_work_again(live_database: str, model: Model) -> None:
    rows = {how: FIGHTS[model.execution].enqueue(how) for how in hostile.RETURNS}
    with running(**model.slots) as scheduler:
        assert scheduler.join(60), {how: story_of(row) for how, row in rows.items()}
        assert (scheduler.in_flight.in_flight(), scheduler.dead_loops) == (0, [])
    for how, row in rows.items():
        story = story_of(row)
        assert len(story.outcomes) == 1, (how, story)
        assert story.status == "completed" or story.exceptions == ["ResultNotStorable"], (how, story)
    assert list(verify(database(live_database), overdue_seconds=0.0)) == []


def test_logs_and_progress_that_no_database_takes_cost_nothing(
    live_database: str, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    with running(renew=0.2, lease=2.0, **model.slots) as scheduler:
        rows = [TALKS[model.execution].enqueue() for _ in range(3)]
        assert scheduler.join(60)
        assert (scheduler.in_flight.in_flight(), scheduler.dead_loops) == (0, [])
    assert [story_of(row) for row in rows] == [Story("completed", ["completed"], [], "said")] * 3
    lines = Attempt.objects.using(live_database).get(job_id=rows[0].pk).captured_log.lines
    assert len(lines) >= 9
    assert not [record for record in caplog.records if "database failed" in record.getMessage()], caplog.text[:2000]
    assert list(verify(database(live_database), overdue_seconds=0.0)) == []


@pytest.mark.parametrize("task", [hostile.policy_exits, hostile.policy_overflows], ids=["exits", "overflows"])
def test_a_retry_policy_that_fails_ends_the_job_and_no_timer(live_database: str, task: Any) -> None:
    with running(cancel_grace=0.2) as scheduler:
        raised = task.enqueue()
        late = task.using(timeout=0.1).enqueue(0.4)
        wait_until(lambda: jobs.get(late).status == "timed_out", timeout=10)
        assert scheduler.join(20)
        # Timers go on.
        again = tasks.sleep_on_loop.using(timeout=0.1).enqueue(30.0)
        wait_until(lambda: jobs.get(again).status == "timed_out", timeout=10)
    assert story_of(raised) == Story("failed", ["failed"], ["ValueError"])
    assert story_of(late) == Story("timed_out", ["timed_out"], ["TimedOut"])
    assert not Job.objects.using(live_database).filter(status="running").exists()
