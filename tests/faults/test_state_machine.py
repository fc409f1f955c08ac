"""Any sequence of verbs under a turned clock leaves the tables as a small model of the store says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.loss import LostAttempt, after_loss
from jobs.domain.outcome import Ending, Failure, Outcome
from jobs.domain.status import TERMINAL, AttemptOutcome, Status
from jobs.domain.verdict import closing_for
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel
from jobs.store.claim import Owner
from jobs.store.extend import begin, extend, stop_lingering
from jobs.store.promote import expire, promote
from jobs.store.prune import prune
from jobs.store.reclaim import Looks, overdue, reclaim
from jobs.store.record import record
from jobs.store.release import release
from jobs.store.requeue import requeue
from jobs.store.verify import verify
from tests.support.store import Bench
from tests.support.store_model import REQUEUED, ModelAttempt, ModelJob, StoreModel

LEASE = 30.0
FAILURE = Failure("builtins.ValueError", "boom", "Traceback")
ENDINGS = {
    "completed": Outcome(Ending.COMPLETED, result="1"),
    "failed": Outcome(Ending.FAILED, failure=FAILURE),
    "failed, to be retried": Outcome(Ending.FAILED, failure=FAILURE, retry_after_seconds=20.0),
    "failed, to be retried at once": Outcome(Ending.FAILED, failure=FAILURE, retry_after_seconds=0.0),
    "timed out": Outcome(Ending.TIMED_OUT, failure=FAILURE),
    "timed out, to be retried": Outcome(Ending.TIMED_OUT, failure=FAILURE, retry_after_seconds=5.0),
    "cancelled": Outcome(Ending.CANCELLED),
    "snoozed": Outcome(Ending.SNOOZED, retry_after_seconds=10.0),
    "interrupted": Outcome(Ending.INTERRUPTED),
    "lost": Outcome(Ending.LOST, reason="child died"),
}
SAME = {
    AttemptOutcome.FAILED: "failed",
    AttemptOutcome.TIMED_OUT: "timed out",
    AttemptOutcome.CANCELLED: "cancelled",
    AttemptOutcome.INTERRUPTED: "interrupted",
}
FEW = st.integers(0, 30)
"""Picks one of what there is, modulo."""
RARELY = st.sampled_from([False, False, True])
LATER = st.sampled_from([0.0, 0.0, 11.0])


class StoreMachine(RuleBasedStateMachine):
    alias = ""

    @initialize()
    def begin_empty(self) -> None:
        self.undone = transaction.atomic(using=self.alias)
        self.undone.__enter__()
        self.bench = Bench(self.alias)
        self.owners = [Owner(uuid4(), "worker-1"), Owner(uuid4(), "worker-2")]
        self.model = StoreModel()
        self.claims: list[tuple[Owner, Claim]] = []
        """Everything ever claimed: also what is closed, reclaimed, handed back by now."""
        self.seen: Looks = {}
        # From an empty store most sequences would be about nothing: some that run, and some with a past.
        for expires, key, until_started, max_lost in (
            (None, None, False, 1), (None, "a", False, 1), (10.0, "b", True, 0),
            (10.0, None, False, 2), (None, None, False, 2), (10.0, None, False, 2),
        ):  # fmt: skip
            at_most_once = max_lost == 1
            self.submit(0.0, expires, key, until_started, priority=0, at_most_once=at_most_once, max_lost=max_lost)
        self.claim(0, 100)
        lost, unknown, retried = (one for _, one in self.claims[3:6])
        self._record(self.owners[0], lost, "lost", started=True)
        self._record(self.owners[0], retried, "failed, to be retried", started=True, lingers=True)
        self._release(self.owners[0], unknown, task_unknown=True)
        self.claim(1, 100)

    def teardown(self) -> None:
        if not hasattr(self, "undone"):
            return
        try:
            assert list(verify(self.bench.db, overdue_seconds=1_000_000.0)) == []
        finally:
            transaction.set_rollback(True, using=self.alias)
            self.undone.__exit__(None, None, None)

    # -- time

    @rule(seconds=st.sampled_from([1.0, 7.0, 31.0, 100.0]))
    def turn(self, seconds: float) -> None:
        self.bench.turn(seconds)

    # -- callers

    @rule(
        delay=st.sampled_from([0.0, 0.0, 15.0]),
        priority=st.sampled_from([0, 0, 5]),
        expires=st.sampled_from([None, None, 10.0]),
        key=st.sampled_from([None, None, "a", "b"]),
        until_started=st.booleans(),
        at_most_once=st.booleans(),
        max_lost=st.integers(0, 2),
    )
    def submit(self, delay: float, expires: float | None, key: str | None, until_started: bool, **options: Any) -> None:
        now = self.bench.now
        expires_at = None if expires is None else now + timedelta(seconds=expires)
        until_started = until_started and key is not None
        receipt = self.bench.submit(
            delay_seconds=delay, expires_at=expires_at, unique_key=key, unique_until_started=until_started, **options
        )
        holder = self.model.holder(key)
        assert receipt.created is (holder is None)
        if holder is not None:
            assert (receipt.job_id, receipt.status) == (holder.id, holder.status)
            return
        status = Status.SCHEDULED if delay else Status.PENDING
        self.model.jobs[receipt.job_id] = ModelJob(
            receipt.job_id, status, now + timedelta(seconds=delay), expires_at=expires_at, key=key, slot=key,
            until_started=until_started, **options,
        )  # fmt: skip
        assert receipt.status is status

    @precondition(lambda self: self.model.jobs)
    @rule(picks=st.sets(FEW, min_size=1, max_size=4), running=st.booleans())
    def cancel(self, picks: set[int], running: bool) -> None:
        jobs = {job.id: job for job in map(self._job, picks)}
        expected = {
            key: status for key, job in jobs.items() if (status := self.model.cancel(job, self.bench.now, running))
        }
        assert cancel(self.bench.db, jobs, running=running) == expected

    @precondition(lambda self: self.model.jobs)
    @rule(pick=FEW, later=st.booleans(), whatever=RARELY)
    def requeue(self, pick: int, later: bool, whatever: bool) -> None:
        ended = [job for job in self.model.jobs.values() if job.status in REQUEUED]
        job = self._job(pick) if whatever or not ended else ended[pick % len(ended)]
        at = self.bench.now + timedelta(seconds=10) if later else None
        expected = self.model.requeue(job, at, self.bench.now)
        assert requeue(self.bench.db, [job.id], at=at).moved == ({} if expected is None else {job.id: expected})

    # -- the scheduler's agents

    @rule(later=LATER)
    def promote(self, later: float) -> None:
        self.bench.turn(later)
        assert promote(self.bench.db) == self.model.promote(self.bench.now)

    @rule(later=LATER)
    def expire(self, later: float) -> None:
        self.bench.turn(later)
        assert expire(self.bench.db) == self.model.expire(self.bench.now)

    @rule(owner=st.integers(0, 1), free=st.sampled_from([1, 2, 100]))
    def claim(self, owner: int, free: int) -> None:
        expected = [one for execution in Execution for one in self.model.claimable(execution, self.bench.now)[:free]]
        claims = self.bench.claim(free, owner=self.owners[owner], lease=LEASE)
        assert sorted(one.job_id for one in claims) == sorted(job.id for job in expected)
        for one in claims:
            job = self.model.jobs[one.job_id]
            self.model.open_attempt(
                one.attempt_id, job, self.owners[owner].id, self.bench.now + timedelta(seconds=LEASE)
            )
            assert (one.number, one.failures, one.losses) == (job.attempts, job.failures, job.losses)
            self.claims.append((self.owners[owner], one))

    @precondition(lambda self: self.claims)
    @rule(pick=FEW, how=st.sampled_from(sorted(ENDINGS)), started=st.booleans(), lingers=st.booleans(), asked=RARELY)
    def record(self, pick: int, how: str, started: bool, lingers: bool, asked: bool) -> None:
        """Also of attempts that are not open any more, as a worker does that was frozen."""
        owner, one = self._claim(pick)
        self._ask_to_stop(one, asked)
        self._record(owner, one, how, started=started, lingers=lingers)

    def _record(self, owner: Owner, one: Claim, how: str, *, started: bool, lingers: bool = False) -> None:
        outcome = ENDINGS[how]
        closing = closing_for(one, outcome, started_at=self.bench.now if started else None, lingers=lingers)
        attempt = self.model.attempts.get(one.attempt_id)
        again = attempt is not None and attempt.outcome == closing.outcome != AttemptOutcome.LOST
        went = self.model.close(closing, owner.id, self.bench.now, 60.0)
        recorded = record(self.bench.db, owner.id, [closing], actor="", linger_seconds=60.0)
        assert recorded.closed == ({} if went is None else {one.attempt_id: went})
        assert recorded.written_before == ({one.attempt_id} if again else set())
        assert recorded.lost == ({one.attempt_id} if went is None and not again else set())

    @precondition(lambda self: self.claims)
    @rule(pick=FEW)
    def record_anothers(self, pick: int) -> None:
        """The fence is the attempt's id and the worker's: one of them is not enough."""
        owner, one = self._claim(pick)
        (other,) = (each for each in self.owners if each is not owner)
        attempt = self.model.attempts.get(one.attempt_id)
        how = "completed" if attempt is None else SAME.get(attempt.outcome, "completed")
        closing = closing_for(one, ENDINGS[how], started_at=None)
        recorded = record(self.bench.db, other.id, [closing], actor="")
        assert (recorded.closed, recorded.lost) == ({}, {one.attempt_id})
        assert release(self.bench.db, other.id, [one.attempt_id], actor="") == set()
        assert begin(self.bench.db, other.id, one.attempt_id) is False
        asked = {one.attempt_id: None}
        assert extend(self.bench.db, other.id, asked, lease_seconds=LEASE, lingering=asked).renewed == frozenset()
        assert stop_lingering(self.bench.db, other.id, asked) == 0

    @precondition(lambda self: self.claims)
    @rule(pick=FEW, asked=RARELY)
    def begin(self, pick: int, asked: bool) -> None:
        owner, one = self._claim(pick)
        self._ask_to_stop(one, asked)
        attempt = self.model.attempts.get(one.attempt_id)
        may = bool(
            attempt and attempt.open and attempt.lease_until > self.bench.now and not attempt.job.cancel_requested
        )
        assert begin(self.bench.db, owner.id, one.attempt_id) is may
        if attempt is not None and may:
            attempt.started = attempt.job.started = True

    @precondition(lambda self: self.claims)
    @rule(picks=st.sets(FEW, min_size=1, max_size=4), owner=st.integers(0, 1))
    def extend(self, picks: set[int], owner: int) -> None:
        self._extend(owner, {self._claim(pick)[1].attempt_id for pick in picks})

    def _extend(self, owner: int, asked: set[int]) -> None:
        now, worker = self.bench.now, self.owners[owner].id
        mine = [one for one in map(self.model.attempts.get, asked) if one is not None and one.worker == worker]
        running = {one.id for one in mine if one.open}
        renewal = extend(self.bench.db, worker, dict.fromkeys(asked), lease_seconds=LEASE, lingering=asked)
        assert renewal.renewed == running
        assert renewal.lost == asked - running
        assert renewal.cancel_requested == {one.id for one in mine if one.open and one.job.cancel_requested}
        for one in mine:
            if one.open:
                one.lease_until = now + timedelta(seconds=LEASE)
            if one.lingering_until is not None:
                one.lingering_until = now + timedelta(seconds=LEASE)

    @precondition(lambda self: self.claims)
    @rule(pick=FEW)
    def stop_lingering(self, pick: int) -> None:
        owner, one = self._claim(pick)
        stop_lingering(self.bench.db, owner.id, [one.attempt_id])
        attempt = self.model.attempts.get(one.attempt_id)
        if attempt is not None:
            attempt.lingering_until = None

    @precondition(lambda self: self.claims)
    @rule(pick=FEW, task_unknown=st.booleans(), asked=RARELY)
    def release(self, pick: int, task_unknown: bool, asked: bool) -> None:
        owner, one = self._claim(pick)
        self._ask_to_stop(one, asked)
        self._release(owner, one, task_unknown)

    def _release(self, owner: Owner, one: Claim, task_unknown: bool) -> None:
        expected = self.model.release(one.attempt_id, owner.id, self.bench.now, task_unknown)
        released = release(self.bench.db, owner.id, [one.attempt_id], actor="", task_unknown=task_unknown)
        assert released == ({one.attempt_id} if expected else set())

    @rule(later=st.sampled_from([0.0, 31.0]))
    def look(self, later: float) -> None:
        self.bench.turn(later)
        self.seen = overdue(self.bench.db)
        late = {one.id: one.lease_until for one in self._open() if one.lease_until < self.bench.now}
        assert self.seen == late

    @precondition(lambda self: self.claims)
    @rule(
        looked=st.booleans(), later=st.sampled_from([0.0, 31.0]), pick=FEW, asked=RARELY, renewed=st.booleans()
    )  # fmt: skip
    def reclaim(self, looked: bool, later: float, pick: int, asked: bool, renewed: bool) -> None:
        """What an earlier look saw, whatever has happened since."""
        if looked:
            self.look(31.0)
        owner, held = self._claim(pick)
        self._ask_to_stop(held, asked)
        if renewed:
            self._extend(self.owners.index(owner), {held.attempt_id})
        self.bench.turn(later)
        taken = [one for one in self._open() if self.seen.get(one.id) == one.lease_until]
        for one in taken:
            lost = LostAttempt(
                one.id, one.job.id, "tests.work", one.number, one.job.losses, one.job.max_lost, one.job.at_most_once,
                one.started,
            )  # fmt: skip
            self.model.close(after_loss(lost, ""), None, self.bench.now, 0.0)
        assert reclaim(self.bench.db, self.seen) == sorted(one.id for one in taken)

    @rule()
    def prune(self) -> None:
        age = timedelta(seconds=20)  # a call may linger for longer
        keep = dict.fromkeys(TERMINAL, age)
        deleted = 0
        while batch := prune(self.bench.db, keep):
            deleted += batch
        assert deleted == self.model.prune(age, self.bench.now)

    # -- what holds after each step

    @invariant()
    def the_tables_are_as_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = {
            job.pk: (
                job.status, (job.attempts, job.failures, job.losses, job.snoozes, job.interruptions), job.run_at,
                job.unique_slot, job.execution, job.cancel_requested_at is not None, job.ended_at,
                job.unknown_since is not None, job.expires_at, job.started_at is not None,
            )
            for job in Job.objects.using(self.alias)
        }  # fmt: skip
        assert stored == {
            job.id: (
                job.status, job.counts, job.run_at, job.slot, job.execution, job.cancel_requested, job.ended_at,
                job.unknown, job.expires_at, job.started,
            )
            for job in self.model.jobs.values()
        }  # fmt: skip
        columns = ("id", "job_id", "number", "outcome", "lease_until", "lingering_until", "started_at")
        attempts = Attempt.objects.using(self.alias).values_list(*columns)
        assert {(*one[:-1], one[-1] is not None) for one in attempts} == {
            (one.id, one.job.id, one.number, one.outcome, one.lease_until, one.lingering_until, one.started)
            for one in self.model.attempts.values()
        }

    def _job(self, pick: int) -> ModelJob:
        return list(self.model.jobs.values())[pick % len(self.model.jobs)]

    def _ask_to_stop(self, one: Claim, asked: bool) -> None:
        job = self.model.jobs.get(one.job_id)
        if asked and job is not None:
            self.model.cancel(job, self.bench.now, True)
            cancel(self.bench.db, [job.id])

    def _claim(self, pick: int) -> tuple[Owner, Claim]:
        """Mostly one whose attempt is open, else one of the newest."""
        open_ids = {one.id for one in self._open()}
        held = [claim for claim in self.claims if claim[1].attempt_id in open_ids]
        some = held if held and pick % 4 else self.claims
        return some[-1 - pick % len(some)]

    def _open(self) -> list[ModelAttempt]:
        return [one for one in self.model.attempts.values() if one.open]


def drive(alias: str, examples: int, steps: int) -> None:
    machine = type("Machine", (StoreMachine,), {"alias": alias})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_sequence_of_verbs_leaves_the_tables_as_the_model_says(database: str) -> None:
    drive(database, 100, 30)


@pytest.mark.slow
def test_very_many_sequences_of_verbs_do(database: str) -> None:
    drive(database, 1000, 50)
