"""Outcomes, renewals and cancels of the same jobs at once: nothing is lost, and nobody waits for ever."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connections

from jobs.domain.closing import Closing
from jobs.domain.status import AttemptOutcome, Status
from jobs.models import Attempt, Job
from jobs.store.cancel import cancel
from jobs.store.database import database as store_database
from jobs.store.extend import extend
from jobs.store.record import record
from tests.support.store import Bench

JOBS = 300


@pytest.mark.parametrize("seed", range(3))
def test_a_cancel_beats_a_retry_that_is_being_recorded(live_bench: Bench, seed: int) -> None:
    bench = live_bench
    bench.submit_all([bench.submission(max_retries=9) for _ in range(JOBS)])
    claims = bench.claim(free=JOBS, lease=3600.0)
    assert len(claims) == JOBS
    db = store_database(bench.alias)
    left = {
        one.attempt_id: Closing(
            one.attempt_id,
            one.job_id,
            one.task,
            one.number,
            AttemptOutcome.FAILED,
            Status.RETRY_WAIT,
            failures=1,
            delay_seconds=3600.0,
        )
        for one in claims
    }
    recording = threading.Event()
    recording.set()
    errors: list[BaseException] = []

    def record_all() -> None:
        while left:
            group = list(left.values())[:10]
            done = record(db, bench.owner.id, group, actor="test")
            assert not done.lost
            for attempt_id in done.closed:
                del left[attempt_id]
        recording.clear()

    def cancel_all() -> None:
        for one in random.Random(seed).sample(claims, JOBS):
            cancel(db, [one.job_id], actor="test")

    def renew_all() -> None:
        while recording.is_set():
            extend(db, bench.owner.id, dict.fromkeys(list(left), None), lease_seconds=3600.0)

    def safely(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)
            recording.clear()
        finally:
            connections[bench.alias].close()

    threads = [threading.Thread(target=safely, args=(act,)) for act in (record_all, cancel_all, renew_all)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)
    assert Counter(Job.objects.using(bench.alias).values_list("status", flat=True)) == {"cancelled": JOBS}
    assert Counter(Attempt.objects.using(bench.alias).values_list("outcome", flat=True)) == {"failed": JOBS}
    assert set(Job.objects.using(bench.alias).values_list("failures", flat=True)) == {1}
