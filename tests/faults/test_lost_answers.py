"""A COMMIT gets no answer, or its backend is terminated: what is recorded is recorded once, and nothing is orphaned."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

import jobs
from jobs import Status
from jobs.models import Attempt, Job
from tests.support import faulty, tasks
from tests.support.models import effects
from tests.support.proxy import Harm, proxy_before
from tests.support.schedulers import scheduler, url_of
from tests.support.story import story_of
from tests.support.waiting import wait_until

CALM = {"LEASE": 60, "RENEW": 20, "POLL": 0.5}
"""Leases so long that nothing here is repaired by waiting for one."""
CLAIM, OUTCOME, BEGIN = "INSERT INTO jobs_attempt", "SET outcome = closing.outcome", "UPDATE jobs_job SET started_at"
# A lost commit and a terminated backend are both rolled back: the easier half.
HARMS = [
    "answer lost",
    "commit late",
    pytest.param("commit lost", marks=pytest.mark.slow),
    pytest.param("backend terminated", marks=pytest.mark.slow),
]

pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("where", [CLAIM, OUTCOME], ids=["claim", "outcome"])
def test_each_job_runs_once_and_is_recorded_once(live_database: str, where: str, harm: Harm) -> None:
    size = 30
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=CALM, url=proxy.url) as worker:
            wait_until(lambda: proxy.links >= 4)
            fault = proxy.at_commit(where, harm)
            rows = jobs.enqueue_many([(tasks.leave_mark, tasks.aleave_mark)[n % 2].bind("mark") for n in range(size)])
            assert fault.happened.wait(20)
            if harm == "commit late":
                wait_until(lambda: effects(live_database, "mark") > 0, what="it goes on meanwhile")
                fault.released.set()
            wait_until(lambda: done(rows) == size, timeout=45, what="all completed")
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
        assert "Traceback" not in worker.output, worker.output
        assert "the lease is lost" not in worker.output, worker.output
    assert effects(live_database, "mark") == size
    assert Attempt.objects.using(live_database).count() == size
    stored = Job.objects.using(live_database).filter(pk__in=[row.pk for row in rows])
    assert set(stored.values_list("attempts", "losses", "failures")) == {(1, 0, 0)}


def done(rows: list[Job]) -> int:
    return sum(jobs.get(row).status == Status.COMPLETED for row in rows)


@pytest.mark.parametrize("harm", HARMS)
def test_an_at_most_once_body_runs_at_most_once_whatever_became_of_its_start(live_database: str, harm: Harm) -> None:
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=CALM, url=proxy.url):
            wait_until(lambda: proxy.links >= 4)
            fault = proxy.at_commit(BEGIN, harm)
            jobs.enqueue_many([faulty.once.bind("once"), *(tasks.leave_mark.bind("mark") for _ in range(6))])
            assert fault.happened.wait(20)
            fault.released.set()
            # Those that were claimed with it are not forgotten either.
            unfinished = Job.objects.using(live_database).exclude(status="completed")
            wait_until(lambda: not unfinished.exists(), timeout=30, what=f"all completed; left: {unfinished}")
    assert effects(live_database, "once") == 1
    assert effects(live_database, "mark") == 6
    assert set(Job.objects.using(live_database).values_list("attempts", "losses")) == {(1, 0)}


@contextmanager
def first_claim_stuck_in_its_commit(alias: str) -> Iterator[tuple[Callable[[], bool], Callable[[], None]]]:
    """Whether it is stuck, and what lets it go on. The server has all of the claim by then, and holds its rows."""
    with connections[alias].cursor() as cursor:
        cursor.execute(STICK)
        cursor.execute("SELECT pg_advisory_lock(4711)")

        def stuck() -> bool:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            return bool(cursor.fetchone()[0])

        try:
            yield stuck, lambda: cursor.execute("SELECT pg_advisory_unlock_all()")
        finally:
            cursor.execute("SELECT pg_advisory_unlock_all()")
            cursor.execute("DROP FUNCTION stick() CASCADE")


STICK = """
CREATE FUNCTION stick() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.job_id = (SELECT min(id) FROM jobs_job) THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER stick AFTER INSERT ON jobs_attempt DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION stick();
"""


def test_a_claim_whose_commit_arrives_when_all_is_quiet_again_is_handed_back(live_database: str) -> None:
    """The first look for it finds nothing; the row appears later. Well within the lease another look must find it."""
    options = {"LEASE": 60, "RENEW": 1, "POLL": 0.5}
    with (
        proxy_before(url_of(live_database)) as proxy,
        first_claim_stuck_in_its_commit(live_database) as (stuck, let_go),
    ):
        with scheduler(live_database, jobs=options, url=proxy.url) as worker:
            wait_until(lambda: proxy.links >= 4)
            late = tasks.leave_mark.enqueue("late")
            wait_until(stuck)
            proxy.cut()
            proxy.mend()
            other = tasks.leave_mark.enqueue("other")
            wait_until(lambda: jobs.get(other).status == Status.COMPLETED, what="it is connected again")
            let_go()
            wait_until(lambda: jobs.get(late).status == Status.COMPLETED, timeout=20, what="handed back and run")
            assert "claims whose commit got no answer" in worker.output
    assert (jobs.get(late).attempts, jobs.get(late).losses) == (1, 0)


@pytest.mark.parametrize("harm", HARMS)
def test_an_outcome_that_is_written_twice_keeps_its_own_end(live_database: str, harm: Harm, tmp_path: Path) -> None:
    """A failure with a retry: written twice it would be counted twice, or retried twice."""
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=CALM, url=proxy.url):
            wait_until(lambda: proxy.links >= 4)
            fault = proxy.at_commit(OUTCOME, harm)
            row = tasks.fail_twice.enqueue()
            assert fault.happened.wait(20)
            fault.released.set()
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=30)
    assert story_of(row).outcomes == ["failed", "failed", "completed"]
    assert jobs.get(row).failures == 2
