"""The checker finds each broken promise, and none where all hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs import discovery
from jobs.domain.failure import system_failure
from jobs.domain.status import AttemptOutcome, Status
from jobs.management.commands.jobs import Command
from jobs.models import Job, Occurrence, Schedule
from jobs.store.cancel import cancel
from jobs.store.extend import begin
from jobs.store.reclaim import overdue, reclaim
from jobs.store.release import release
from jobs.store.requeue import requeue
from jobs.store.verify import PROMISES, SHOWN, Violation, verify
from tests.support.schedules import Diary
from tests.support.store import START, Bench

FAILURE = system_failure("ValueError", "boom")


def broken(bench: Bench, overdue_seconds: float = 60.0) -> list[str]:
    return [one.promise for one in verify(bench.db, overdue_seconds=overdue_seconds)]


def without_constraints(bench: Bench) -> None:
    """For the rest of the test: what the database itself would refuse is to be found as well."""
    if bench.alias == "postgres":
        bench.db.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table, name in (
            ("jobs_attempt", "jobs_attempt_ended_iff_closed"),
            ("jobs_job", "jobs_job_ended_iff_terminal"),
            ("jobs_job", "jobs_job_no_slot_when_ended"),
        ):
            bench.db.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    else:
        bench.db.execute("PRAGMA ignore_check_constraints = ON")
    bench.db.execute("DROP INDEX jobs_attempt_one_open")


@pytest.fixture(autouse=True)
def constraints_again(bench: Bench) -> Iterator[None]:
    """The rollback brings back everything but SQLite's PRAGMA, which belongs to the connection."""
    yield
    if bench.alias != "postgres":
        bench.db.execute("PRAGMA ignore_check_constraints = OFF")


def running(bench: Bench) -> int:
    bench.submit()
    (claimed,) = bench.claim()
    return claimed.job_id


def completed(bench: Bench) -> int:
    bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, result="1")
    return claimed.job_id


def failed(bench: Bench) -> int:
    bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.FAILED, failure=FAILURE, failures=1)
    return claimed.job_id


def fired(bench: Bench) -> int:
    """The job of a schedule that has fired once."""
    name = f"s{Schedule.objects.using(bench.alias).count()}"
    diary = Diary(bench.alias, bench)
    diary.schedule(name=name, interval_seconds=60, overlap="allow")
    diary.turn(60)
    diary.round()
    newest: int = Job.objects.using(bench.alias).latest("id").pk
    return newest


ATTEMPT = "UPDATE jobs_attempt SET {} WHERE job_id = %(id)s"
JOB = "UPDATE jobs_job SET {} WHERE id = %(id)s"
SCHEDULE = "UPDATE jobs_schedule SET {} WHERE id = (SELECT schedule_id FROM jobs_job WHERE id = %(id)s)"
OCCURRENCE = "UPDATE jobs_occurrence SET {} WHERE job_id = %(id)s"
SECOND = """
    INSERT INTO jobs_attempt (job_id, number, worker_id, worker_name, outcome, claimed_at, lease_until, ended_at)
    SELECT job_id, {}, worker_id, '', outcome, claimed_at, lease_until, ended_at FROM jobs_attempt
    WHERE job_id = %(id)s
"""

# What there is, then what is done to it, by the promise that this breaks.
FABRICATED: dict[str, tuple[Callable[[Bench], int], list[str]]] = {
    "a running job has an open attempt": (
        running,
        [ATTEMPT.format("outcome = 'interrupted', ended_at = claimed_at")],
    ),
    "an open attempt belongs to a running job": (running, [JOB.format("status = 'pending'")]),
    "a job never has two open attempts": (running, [SECOND.format(2), JOB.format("attempts = 2")]),
    "an attempt's number is its job's own and at most the job's count": (running, [JOB.format("attempts = 0")]),
    "a closed attempt has an end, not before its start": (completed, [ATTEMPT.format("ended_at = NULL")]),
    "a completed job has a completed attempt": (completed, [ATTEMPT.format("outcome = 'interrupted'")]),
    "a failed or timed out job has a closed attempt that tells why": (
        failed,
        ["DELETE FROM jobs_failure WHERE job_id = %(id)s"],
    ),
    "an ended job has its end, and no other has": (completed, [JOB.format("ended_at = NULL")]),
    "an ended job holds no unique key": (completed, [JOB.format("unique_slot = 'key'")]),
    "an unfinished job holds its unique key": (
        lambda bench: bench.submit(unique_key=f"key {Job.objects.using(bench.alias).count()}").job_id,
        [JOB.format("unique_slot = NULL")],
    ),
    "a blocked job waits for an earlier one of its schedule": (
        lambda bench: bench.submit().job_id,
        [JOB.format("status = 'blocked'")],
    ),
    "no job waits that somebody asked to stop": (
        lambda bench: bench.submit().job_id,
        [JOB.format("cancel_requested_at = submitted_at")],
    ),
    "a job that waits for a retry has failed": (
        lambda bench: bench.submit().job_id,
        [JOB.format("status = 'retry_wait'")],
    ),
    "a job completes at most once": (completed, [SECOND.format(2), JOB.format("attempts = 2")]),
    "what a job has failed and lost is borne out by its attempts": (running, [JOB.format("losses = 1")]),
    "only a closed attempt lingers": (running, [ATTEMPT.format("lingering_until = lease_until")]),
    "only a completed job has a result": (
        completed,
        [JOB.format("status = 'cancelled'"), ATTEMPT.format("outcome = 'cancelled'")],
    ),
    "every job has its payload": (
        lambda bench: bench.submit().job_id,
        ["DELETE FROM jobs_payload WHERE job_id = %(id)s"],
    ),
    "a schedule that may fire has a next instant": (fired, [SCHEDULE.format("next_run_at = NULL")]),
    "a finished schedule has no next instant": (fired, [SCHEDULE.format("is_exhausted = true")]),
    "a schedule's next instant is after its last one": (fired, [SCHEDULE.format("next_run_at = last_occurrence_at")]),
    "a schedule remembers every instant that made a job": (fired, [SCHEDULE.format("last_occurrence_at = NULL")]),
    "an occurrence that was made names its own job": (fired, [OCCURRENCE.format("job_id = NULL")]),
    "a planned instant makes at most one job": (
        fired,
        [
            # Of its predecessor's schedule and instant, with an occurrence that agrees.
            """
            UPDATE jobs_job SET schedule_id = (SELECT schedule_id FROM jobs_job WHERE id = %(id)s - 1),
                   scheduled_for = (SELECT scheduled_for FROM jobs_job WHERE id = %(id)s - 1)
            WHERE id = %(id)s
            """,
            "DELETE FROM jobs_occurrence WHERE job_id = %(id)s",
        ],
    ),
    "no open attempt's lease is long over": (running, [ATTEMPT.format("lease_until = '2027-03-01 11:00:00+00:00'")]),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_broken_promise_is_found_with_its_job(bench: Bench, promise: str) -> None:
    without_constraints(bench)
    make, harm = FABRICATED[promise]
    unharmed, job_id = make(bench), make(bench)
    assert broken(bench) == []
    for statement in harm:
        bench.db.execute(statement, id=job_id)
    found = list(verify(bench.db, overdue_seconds=60.0))
    assert [one.promise for one in found] == [promise]
    if found[0].job_id is None:
        assert found[0].schedule_id == Schedule.objects.using(bench.alias).order_by("id").last().pk
    else:
        assert found[0].job_id == job_id != unharmed


def test_a_job_that_went_through_everything_breaks_none(bench: Bench) -> None:
    bench.submit_all([bench.submission(max_retries=3, unique_key=f"key {n}", at_most_once=n == 4) for n in range(9)])
    retried, cancelled, lost, handed_back, once, timed_out, snoozed, interrupted, done = bench.claim()
    bench.close(retried, Status.RETRY_WAIT, outcome=AttemptOutcome.FAILED, failure=FAILURE, failures=1, delay_seconds=5)
    cancel(bench.db, [cancelled.job_id])
    bench.close(cancelled, Status.CANCELLED)
    release(bench.db, bench.owner.id, [handed_back.attempt_id], actor="")
    assert begin(bench.db, bench.owner.id, once.attempt_id)
    bench.close(timed_out, Status.TIMED_OUT, failure=FAILURE, failures=1, lingers=True)
    bench.close(snoozed, Status.SCHEDULED, outcome=AttemptOutcome.INTERRUPTED, snoozes=1, delay_seconds=60)
    bench.close(interrupted, Status.PENDING, outcome=AttemptOutcome.INTERRUPTED, interruptions=1)
    bench.close(done, result="1")
    assert broken(bench) == []
    bench.turn(100)
    assert broken(bench, 39.0) == ["no open attempt's lease is long over"] * 2
    assert set(reclaim(bench.db, overdue(bench.db))) == {lost.attempt_id, once.attempt_id}
    assert (bench.status(lost.job_id), bench.status(once.job_id)) == ("pending", "failed")
    assert broken(bench) == []
    requeue(bench.db, [once.job_id, timed_out.job_id, cancelled.job_id, done.job_id])
    assert broken(bench) == []


@pytest.mark.parametrize(
    "changes",
    [{"active": False}, {"retired": True}, {"paused_until": START}, {"problem": "x"}, {"interval_seconds": 7}],
    ids=str,
)
def test_a_schedule_that_may_not_fire_needs_no_next_instant(bench: Bench, changes: dict[str, Any]) -> None:
    fired(bench)
    Schedule.objects.using(bench.alias).update(next_run_at=None, **changes)
    assert broken(bench) == []


def test_a_made_occurrence_of_another_schedules_job_is_found_and_one_whose_job_was_pruned_is_not(bench: Bench) -> None:
    first, second = fired(bench), fired(bench)
    Occurrence.objects.using(bench.alias).filter(job_id=second).update(job_id=first)
    assert broken(bench) == ["an occurrence that was made names its own job"]
    Occurrence.objects.using(bench.alias).filter(job_id=first).update(job_id=first - 1)
    assert broken(bench) == []


def test_a_violation_says_what_breaks_the_promise() -> None:
    assert str(Violation("x", 1)) == "job 1"
    assert str(Violation("x", 1, 2)) == "job 1, attempt 2"
    assert str(Violation("x", schedule_id=3)) == "schedule 3"
    assert str(Violation("x", 1, schedule_id=3)) == "schedule 3, job 1"


def test_at_most_a_hundred_violations_of_a_promise_are_named(bench: Bench) -> None:
    bench.submit_all([bench.submission() for _ in range(SHOWN + 5)])
    bench.db.execute("DELETE FROM jobs_payload")
    assert len(broken(bench)) == SHOWN


def test_the_command_names_each_violation_and_exits_with_1(bench: Bench) -> None:
    job_id = bench.submit().job_id
    out = StringIO()
    call_command("jobs", "verify", stdout=out)
    assert out.getvalue() == "Every promise holds.\n"
    bench.db.execute("DELETE FROM jobs_payload")
    out = StringIO()
    with pytest.raises(CommandError, match="1 violation") as raised:
        call_command("jobs", "verify", stdout=out)
    assert raised.value.returncode == 1
    assert out.getvalue() == f"job {job_id}: broken: every job has its payload\n"


def test_a_broken_tasks_module_does_not_keep_an_operator_from_looking(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(discovery.failed, "shop.tasks", "ImportError: gone")
    out = StringIO()
    # As from a shell: `call_command` would skip the checks by itself.
    Command(stdout=out).execute(force_color=False, no_color=True, skip_checks=False, stderr=None, stdout=None)
    assert "Every promise holds" in out.getvalue()
