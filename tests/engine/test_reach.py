"""Claims go on where the last one ended, and look from the start in time for what became ready at a better place."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from jobs.domain.execution import Execution
from jobs.engine.reach import COSTS, FROM_START_EVERY, Reach
from jobs.store.database import database as store_database
from jobs.store.submit import submit
from tests.support.engine import running
from tests.support.tasks import add, sleep_in_thread

PLACE = (0.0, datetime(2027, 3, 1, tzinfo=timezone.utc), 7)
LANE = ("default", Execution.THREAD)


def claimed(reach: Reach, *, cost: float = 60.0, short: bool = False) -> bool:
    """One claim that ends at PLACE: whether it looked from the start."""
    from_start = reach.begin()
    reach.marks[LANE] = PLACE
    reach.end(time.monotonic() - cost, from_start=from_start, short=short)
    return from_start


def test_the_first_claim_looks_from_the_start_and_the_next_goes_on() -> None:
    reach = Reach()
    assert reach.above(*LANE) is None
    assert claimed(reach)
    assert reach.above(*LANE) == PLACE
    assert not claimed(reach)


def test_a_hint_makes_the_next_claim_look_from_the_start() -> None:
    reach = Reach()
    claimed(reach)
    reach.start_over()
    assert claimed(reach)


def test_a_hint_during_a_look_from_the_start_counts_for_the_next_claim() -> None:
    reach = Reach()
    assert reach.begin()
    reach.start_over()
    reach.marks[LANE] = PLACE
    reach.end(time.monotonic(), from_start=True, short=False)
    assert claimed(reach)


def test_a_claim_that_came_back_short_is_followed_by_one_from_the_start() -> None:
    reach = Reach()
    assert claimed(reach)
    assert not claimed(reach, short=True)
    assert claimed(reach)


def test_looks_from_the_start_come_the_more_often_the_less_they_cost() -> None:
    cheap = Reach()
    claimed(cheap, cost=-1.0)
    assert claimed(cheap)
    costly = Reach()
    claimed(costly, cost=FROM_START_EVERY / COSTS * 2)
    assert not claimed(costly)


def test_an_urgent_job_that_nobody_was_told_of_overtakes_a_backlog(live_database: str) -> None:
    order: list[int] = []
    with running(threads=2, claim_ahead=0.0, poll=600.0) as scheduler:
        scheduler.add_listener(lambda move: order.append(move.job_id) if move.new == "running" else None)
        for _ in range(150):
            sleep_in_thread.enqueue(0.01)
        urgent = add.using(priority=50).bind(1).submission
        [receipt] = submit(store_database(live_database), [urgent])
        assert scheduler.join(60)
    assert len(set(order)) == 151  # on a busy machine one may be handed back, and claimed again
    assert order.index(receipt.job_id) < 140
