"""One job's way through the verbs, on both databases under a turned clock."""

from __future__ import annotations

from datetime import timedelta

from jobs.domain.execution import Execution
from jobs.domain.outcome import Failure, LogLine
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Payload, Result
from jobs.models import Failure as FailureRow
from jobs.store.cancel import cancel
from jobs.store.extend import begin, extend, stop_lingering
from jobs.store.look import look
from jobs.store.promote import expire, promote
from jobs.store.prune import prune
from jobs.store.reclaim import overdue, reclaim, tell_lost
from jobs.store.release import release
from jobs.store.requeue import requeue
from jobs.store.workers import WorkerCard, beat, forget_silent, leave, live_roles, mark_asleep
from tests.support.store import START, Bench


def test_a_submitted_job_is_claimed_and_completed(bench: Bench) -> None:
    receipt = bench.submit(arguments='{"args": [1, "a"], "kwargs": {"b": null}}')
    assert (receipt.created, receipt.status, receipt.run_at) == (True, Status.PENDING, START)
    (claimed,) = bench.claim()
    assert claimed.arguments == {"args": [1, "a"], "kwargs": {"b": None}}
    assert (claimed.job_id, claimed.number, claimed.claimed_at) == (receipt.job_id, 1, START)
    bench.turn(5)
    recorded = bench.close(claimed, result='{"x": [1.5]}', started_at=START, log=(LogLine(0.1, "INFO", "l", "hi"),))
    assert recorded.closed == {claimed.attempt_id: Status.COMPLETED}
    job = bench.job(receipt.job_id)
    assert (job.status, job.started_at, job.ended_at) == (Status.COMPLETED, START, bench.now)
    assert Result.objects.using(bench.alias).get(pk=job.pk).value == {"x": [1.5]}
    attempt = Attempt.objects.using(bench.alias).get(job_id=job.pk)
    assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.COMPLETED, bench.now)
    assert attempt.captured_log.lines == [[0.1, "INFO", "l", "hi"]]


def test_a_batch_keeps_its_order_and_its_payloads(bench: Bench) -> None:
    receipts = bench.submit_all(
        [
            bench.submission(arguments=f'{{"args": [{n}], "kwargs": {{}}}}', unique_key=f"k{n}" if n % 3 else None)
            for n in range(20)
        ]
    )
    stored = Payload.objects.using(bench.alias).in_bulk([receipt.job_id for receipt in receipts])
    assert [stored[receipt.job_id].arguments["args"] for receipt in receipts] == [[n] for n in range(20)]


def test_a_held_unique_key_gives_the_holder(bench: Bench) -> None:
    first = bench.submit(unique_key="k")
    again, other, same = bench.submit_all([bench.submission(unique_key=key) for key in ("k", "x", "x")])
    assert (again.job_id, again.created) == (first.job_id, False)
    assert (other.created, same.created, same.job_id) == (True, False, other.job_id)
    (claimed, _) = bench.claim()
    assert bench.submit(unique_key="k").job_id == first.job_id
    bench.close(claimed)
    assert bench.submit(unique_key="k").created


def test_an_until_started_key_is_free_once_claimed(bench: Bench) -> None:
    first = bench.submit(unique_key="k", unique_until_started=True)
    bench.claim()
    assert bench.submit(unique_key="k", unique_until_started=True).job_id != first.job_id


def test_a_later_job_is_promoted_when_due(bench: Bench) -> None:
    receipt = bench.submit(delay_seconds=90.5)
    assert receipt.status is Status.SCHEDULED
    facts = look(bench.db, ["default"])
    assert facts.due_in is not None
    assert abs(facts.due_in - 90.5) < 0.01
    assert not facts.anything
    bench.turn(90)
    assert promote(bench.db) == 0
    assert bench.claim() == []
    bench.turn(0.6)
    assert promote(bench.db) == 1
    assert [claimed.job_id for claimed in bench.claim()] == [receipt.job_id]


def test_larger_priority_first_then_due_then_id(bench: Bench) -> None:
    low = bench.submit(priority=-50)
    bench.turn(1)
    first, high, second = bench.submit(), bench.submit(priority=100), bench.submit()
    order = [claimed.job_id for claimed in bench.claim()]
    assert order == [high.job_id, first.job_id, second.job_id, low.job_id]


def test_the_claim_takes_no_more_than_asked_in_the_lanes_order(bench: Bench) -> None:
    for _ in range(5):
        bench.submit(queue="b")
        bench.submit(queue="a")
    taken = bench.claim(free=7, queues=("b", "a"))
    assert [claimed.queue for claimed in taken] == ["b"] * 5 + ["a"] * 2


def test_ahead_of_the_free_slots_only_jobs_that_may_wait_are_taken(bench: Bench) -> None:
    bench.submit()
    bench.submit(at_most_once=True)
    bench.submit(unique_key="k", unique_until_started=True)
    plain = bench.submit()
    taken = bench.claim(free=1, ahead=3)
    assert len(taken) == 2
    assert taken[1].job_id == plain.job_id
    assert len(bench.claim(free=4)) == 2


def test_a_failure_waits_for_its_backoff_and_keeps_its_story(bench: Bench) -> None:
    receipt = bench.submit(max_retries=1)
    (claimed,) = bench.claim()
    story = Failure("a.B", "boom", "Traceback", ("c.D",), "app.mail", "send")
    bench.close(claimed, Status.RETRY_WAIT, outcome=AttemptOutcome.FAILED, delay_seconds=30, failures=1, failure=story)
    assert bench.status(receipt.job_id) == Status.RETRY_WAIT
    row = FailureRow.objects.using(bench.alias).get(job_id=receipt.job_id)
    assert (row.exception_class, row.causes, row.module, row.function) == ("a.B", ["c.D"], "app.mail", "send")
    bench.turn(31)
    promote(bench.db)
    (claimed,) = bench.claim()
    assert (claimed.number, claimed.failures) == (2, 1)


def test_cancel_ends_a_waiting_job_and_asks_a_running_one(bench: Bench) -> None:
    waiting, running = bench.submit(delay_seconds=60), bench.submit()
    (claimed,) = bench.claim()
    ids = [waiting.job_id, running.job_id, 999_999]
    assert cancel(bench.db, ids, actor="eve", reason="no") == {
        waiting.job_id: Status.CANCELLED,
        running.job_id: Status.RUNNING,
    }
    assert bench.job(waiting.job_id).cause == "cancelled by eve: no"
    renewal = extend(bench.db, bench.owner.id, {claimed.attempt_id: START}, lease_seconds=60)
    assert renewal.cancel_requested == renewal.renewed == {claimed.attempt_id}
    bench.close(claimed, Status.RETRY_WAIT, outcome=AttemptOutcome.FAILED, delay_seconds=5)
    assert bench.status(running.job_id) == Status.CANCELLED
    assert cancel(bench.db, ids) == {}


def test_a_success_beats_a_cancel_request(bench: Bench) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    cancel(bench.db, [receipt.job_id])
    bench.close(claimed)
    assert bench.status(receipt.job_id) == Status.COMPLETED


def test_running_false_leaves_a_running_job_alone(bench: Bench) -> None:
    receipt = bench.submit()
    bench.claim()
    assert cancel(bench.db, [receipt.job_id], running=False) == {}
    assert bench.job(receipt.job_id).cancel_requested_at is None


def test_an_expired_job_never_starts(bench: Bench) -> None:
    receipt = bench.submit(expires_at=START.replace(minute=5))
    bench.turn(301)
    assert bench.claim() == []
    assert expire(bench.db) == 1
    job = bench.job(receipt.job_id)
    assert (job.status, job.cause) == (Status.CANCELLED, "expired")


def test_a_silent_lease_is_reclaimed_and_the_late_outcome_matches_nothing(bench: Bench) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    assert overdue(bench.db) == {}
    bench.turn(61)
    seen = overdue(bench.db)
    assert list(seen) == [claimed.attempt_id]
    assert reclaim(bench.db, seen) == [claimed.attempt_id]
    job = bench.job(receipt.job_id)
    assert (job.status, job.losses, job.execution) == (Status.PENDING, 1, Execution.PROCESS)
    late = bench.close(claimed)
    assert late.lost == {claimed.attempt_id}
    assert bench.status(receipt.job_id) == Status.PENDING


def test_a_lease_renewed_between_two_looks_is_left_alone(bench: Bench) -> None:
    bench.submit()
    (claimed,) = bench.claim()
    bench.turn(61)
    seen = overdue(bench.db)
    extend(bench.db, bench.owner.id, {claimed.attempt_id: None}, lease_seconds=60)
    bench.turn(61)
    assert reclaim(bench.db, seen) == []


def test_after_max_lost_the_job_fails_as_worker_died(bench: Bench) -> None:
    receipt = bench.submit(max_lost=1)
    for _ in range(2):
        bench.claim()
        bench.turn(61)
        reclaim(bench.db, overdue(bench.db))
    job = bench.job(receipt.job_id)
    assert (job.status, job.cause, job.losses, job.failures) == (Status.FAILED, "worker died", 2, 0)


def test_a_lost_attempt_is_told_with_its_job_its_worker_and_what_comes_next(bench: Bench) -> None:
    receipt = bench.submit(max_lost=1)
    card = WorkerCard(bench.owner.id, bench.owner.name, "h", 1, "both", "", ("default",), {})
    told = []
    for attempt in (1, 2):
        beat(bench.db, card)
        bench.claim()
        bench.turn(61)
        if attempt == 2:
            leave(bench.db, card.id)
        told += tell_lost(bench.db, reclaim(bench.db, overdue(bench.db)))
    where = f"job {receipt.job_id}, attempt {{}} (tests.work) is lost: worker worker-1"
    assert told == [
        f"{where.format(1)}, silent since 2027-03-01 12:00:00 UTC; runs again in a child process",
        f"{where.format(2)}, its lease ended at 2027-03-01 12:02:01 UTC; now failed: worker died",
    ]


def test_at_most_once_is_run_again_only_when_its_body_never_began(bench: Bench) -> None:
    receipt = bench.submit(at_most_once=True)
    bench.claim()
    bench.turn(61)
    reclaim(bench.db, overdue(bench.db))
    (claimed,) = bench.claim()
    assert begin(bench.db, bench.owner.id, claimed.attempt_id)
    bench.turn(61)
    assert not begin(bench.db, bench.owner.id, claimed.attempt_id)
    reclaim(bench.db, overdue(bench.db))
    job = bench.job(receipt.job_id)
    assert (job.status, job.cause) == (Status.FAILED, "outcome unknown")


def test_what_never_began_is_handed_back_without_a_trace(bench: Bench) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    assert release(bench.db, bench.owner.id, [claimed.attempt_id], actor="w", task_unknown=True) == {claimed.attempt_id}
    job = bench.job(receipt.job_id)
    assert (job.status, job.attempts, job.unknown_since) == (Status.PENDING, 0, START)
    assert bench.claim(unknown_tasks=("tests.work",)) == []
    (claimed,) = bench.claim()
    assert (claimed.number, claimed.unknown_since) == (1, START)


def test_a_lingering_call_holds_back_the_retry(bench: Bench) -> None:
    receipt = bench.submit()
    (claimed,) = bench.claim()
    bench.close(claimed, Status.RETRY_WAIT, outcome=AttemptOutcome.TIMED_OUT, delay_seconds=0, lingers=True)
    bench.turn(1)
    assert promote(bench.db) == 0
    stop_lingering(bench.db, bench.owner.id, [claimed.attempt_id])
    assert promote(bench.db) == 1
    assert bench.status(receipt.job_id) == Status.PENDING


def test_a_requeue_starts_afresh_and_takes_its_key_again(bench: Bench) -> None:
    receipt = bench.submit(unique_key="k", max_lost=0)
    bench.claim()
    bench.turn(61)
    reclaim(bench.db, overdue(bench.db))
    other = bench.submit(unique_key="k")
    assert requeue(bench.db, [receipt.job_id]).key_held == {receipt.job_id: "k"}
    cancel(bench.db, [other.job_id])
    assert requeue(bench.db, [receipt.job_id]).moved == {receipt.job_id: Status.PENDING}
    job = bench.job(receipt.job_id)
    assert (job.losses, job.failures, job.cause, job.unique_slot, job.ended_at) == (0, 0, "", "k", None)
    assert job.execution == Execution.THREAD
    (claimed,) = bench.claim()
    assert claimed.number == 2


def test_prune_deletes_by_end_and_by_history_limit(bench: Bench) -> None:
    for n in range(6):
        bench.submit(task="a" if n % 2 else "b")
        (claimed,) = bench.claim()
        bench.close(claimed, result="1")
        bench.turn(10)
    keep = {Status.COMPLETED: timedelta(seconds=45)}
    assert prune(bench.db, keep) == 2
    assert prune(bench.db, keep) == 0
    assert prune(bench.db, keep, history_limit=1) == 2
    assert Result.objects.using(bench.alias).count() == 2


def test_workers_come_and_go(bench: Bench) -> None:
    card = WorkerCard(bench.owner.id, "w", "h", 1, "both", "1", ("default",), {Execution.THREAD: 8})
    beat(bench.db, card)
    beat(bench.db, card)
    mark_asleep(bench.db, card.id, True)
    assert live_roles(bench.db, within_seconds=60) == {"both"}
    bench.turn(100)
    assert live_roles(bench.db, within_seconds=60) == set()
    assert forget_silent(bench.db, silent_seconds=60) == 1
    beat(bench.db, card)
    leave(bench.db, card.id)
