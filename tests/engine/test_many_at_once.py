"""Many threads and running jobs of every execution submit, cancel and requeue at once."""

from __future__ import annotations

import random
import threading
import traceback
from collections import Counter

import jobs
from jobs.models import Job
from tests.support import crowd
from tests.support.engine import running
from tests.support.story import assert_sound
from tests.support.waiting import wait_until

THREADS = 32
ROUNDS = 6


def test_threads_and_jobs_of_every_execution_may_enqueue_cancel_and_requeue_at_once(live_database: str) -> None:
    errors: list[str] = []

    def meddle(number: int) -> None:
        rng = random.Random(number)
        try:
            for _ in range(ROUNDS):
                crowd.meddle(rng.randrange(2**31), depth=1)
        except BaseException:
            errors.append(traceback.format_exc())
        finally:
            crowd.close_connections()

    with running(threads=8, async_slots=20, processes=1, cancel_grace=1.0) as scheduler:
        meddlers = [threading.Thread(target=meddle, args=(number,)) for number in range(THREADS)]
        for one in meddlers:
            one.start()
        for one in meddlers:
            one.join(60)
        assert not any(one.is_alive() for one in meddlers)
        assert errors == []
        assert scheduler.join(60)
        assert scheduler.dead_loops == []
    assert_sound(live_database)
    ends = Counter(Job.objects.using(live_database).values_list("status", flat=True))
    assert set(ends) <= {"completed", "cancelled"}, ends
    assert ends["completed"] > THREADS and ends["cancelled"] > 0
    by_execution = Job.objects.using(live_database).filter(status="completed").values_list("execution", flat=True)
    assert set(by_execution) == {"thread", "async", "process"}


def test_a_unique_key_submitted_from_everywhere_at_once_has_one_holder(live_database: str) -> None:
    with running(threads=8, async_slots=10, processes=1) as scheduler:
        rows = [task.enqueue() for _ in range(5) for task in (crowd.claim_key, crowd.aclaim_key, crowd.pclaim_key)]
        wait_until(lambda: {jobs.get(row).status for row in rows} == {"completed"}, timeout=30)
        assert not scheduler.join(0)
    created = [jobs.get(row).result for row in rows]
    holders = Job.objects.using(live_database).filter(unique_key="one")
    assert holders.count() == 1
    assert Counter(result["created"] for result in created) == {False: 14, True: 1}
    assert {result["id"] for result in created} == {holders.get().pk}
