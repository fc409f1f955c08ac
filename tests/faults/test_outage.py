"""The database is away, for longer than any lease, and comes back: no living job is lost, and every outcome is kept."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import jobs
from jobs import Status
from jobs.models import Attempt, Job, Worker
from tests.support import tasks
from tests.support.models import effects
from tests.support.processes import ChildProcess
from tests.support.proxy import Proxy, proxy_before
from tests.support.schedulers import scheduler, url_of
from tests.support.story import story_of
from tests.support.waiting import pass_time, wait_until

SHORT = {"LEASE": 2, "RENEW": 0.5, "POLL": 0.5}
FIVE_LEASES = 5 * SHORT["LEASE"]
ONE_OF_EACH = (tasks.hang_in_thread, tasks.hang_on_loop, tasks.hang_in_process)

pytestmark = pytest.mark.parametrize("live_database", ["postgres"], indirect=True)

HOW = ["refused", pytest.param("silent", marks=pytest.mark.slow)]
AWAY: dict[str, tuple[Callable[[Proxy], None], Callable[[Proxy], None]]] = {
    "refused": (Proxy.cut, Proxy.mend),
    "silent": (Proxy.pause, Proxy.resume),
}


def begin(alias: str, until: str) -> list[Job]:
    """One job of each execution that runs until a file of that name exists."""
    rows = [task.enqueue(until, until) for task in ONE_OF_EACH]
    wait_until(lambda: effects(alias, until) == len(rows), what="all have begun")
    return rows


def assert_nothing_was_lost(rows: list[Job]) -> None:
    wait_until(lambda: all(jobs.get(row).status == Status.COMPLETED for row in rows), timeout=40, what="all completed")
    for row in rows:
        stored = jobs.get(row)
        counts = (stored.attempts, stored.losses, stored.failures, stored.interruptions)
        assert counts == (1, 0, 0, 0), story_of(row)


def jobs_left(alias: str) -> int:
    return int(Job.objects.using(alias).filter(ended_at=None).count())


def assert_stops(worker: ChildProcess) -> None:
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.output
    assert "Traceback" not in worker.output, worker.output


@pytest.mark.parametrize("how", HOW)
def test_jobs_that_run_through_an_outage_of_five_leases_are_not_lost(
    live_database: str, tmp_path: Path, how: str
) -> None:
    """Two schedulers behind the same proxy: whichever sweeps first after it must leave the other's jobs alone."""
    go_away, come_back = AWAY[how]
    until, during = tmp_path / "leave", tmp_path / "during"
    with proxy_before(url_of(live_database)) as proxy:
        with (
            scheduler(live_database, "--name=one", jobs=SHORT, url=proxy.url) as one,
            scheduler(live_database, "--name=two", jobs=SHORT, url=proxy.url) as two,
        ):
            living, ending = begin(live_database, str(until)), begin(live_database, str(during))
            go_away(proxy)
            pass_time(FIVE_LEASES / 2)
            during.touch()  # these end while nobody can write it down
            pass_time(FIVE_LEASES / 2)
            come_back(proxy)
            assert_nothing_was_lost(ending)
            pass_time(4 * SHORT["RENEW"])  # whoever would take the others away has looked twice by now
            until.touch()
            assert_nothing_was_lost(living)
            for worker in (one, two):
                assert_stops(worker)
    assert not Attempt.objects.using(live_database).exclude(outcome="completed").exists()


@pytest.mark.slow
@pytest.mark.parametrize("how", AWAY)
def test_outages_at_random_instants_lose_nothing(live_database: str, tmp_path: Path, how: str) -> None:
    go_away, come_back = AWAY[how]
    rng = random.Random()
    until = tmp_path / "leave"
    with proxy_before(url_of(live_database)) as proxy:
        with (
            scheduler(live_database, "--name=one", jobs=SHORT, url=proxy.url) as one,
            scheduler(live_database, "--name=two", jobs=SHORT, url=proxy.url) as two,
        ):
            rows = begin(live_database, str(until))
            for _ in range(12):
                go_away(proxy)
                pass_time(rng.uniform(0.0, 6.0))
                come_back(proxy)
                pass_time(rng.uniform(0.5, 4.0))
                # Their bodies do without the database: one that is refused an answer fails, and rightly so.
                rows += jobs.enqueue_many([tasks.add.bind(number, 1) for number in range(20)])
            until.touch()
            wait_until(lambda: jobs_left(live_database) == 0, timeout=60, what="nothing runs or waits")
            assert [story_of(row) for row in rows if jobs.get(row).status != Status.COMPLETED] == []
            for worker in (one, two):
                assert_stops(worker)
    harmed = [row for row in map(jobs.get, rows) if row.losses or row.failures]
    assert harmed == [], f"{[story_of(row) for row in harmed]}\n{one.output}\n---\n{two.output}"


@pytest.mark.slow
def test_claims_that_got_no_answer_before_an_outage_are_handed_back_right_after_it(live_database: str) -> None:
    """Nobody holds them, so nobody renews: a sweeper that looks twice after it would count a loss for each."""
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, "--role=worker", jobs=SHORT, url=proxy.url) as worker:
            wait_until(lambda: Worker.objects.using(live_database).filter(asleep=True).exists(), what="it sleeps")
            fault = proxy.at_commit("INSERT INTO jobs_attempt", "answer lost")
            rows = jobs.enqueue_many([tasks.add.bind(number, 1) for number in range(20)])
            assert fault.happened.wait(20)
            proxy.cut()
            assert Attempt.objects.using(live_database).filter(outcome="running").exists()
            pass_time(FIVE_LEASES)
            proxy.mend()
            with scheduler(live_database, "--role=scheduler", jobs=SHORT) as sweeper:
                wait_until(lambda: jobs_left(live_database) == 0, timeout=40, what="nothing runs or waits")
            assert "claims whose commit got no answer" in worker.output
            assert_stops(worker)
    harmed = [row for row in map(jobs.get, rows) if row.losses or row.failures]
    assert harmed == [], f"{[story_of(row) for row in harmed]}\n{worker.output}\n---\n{sweeper.output}"


@pytest.mark.parametrize("how", HOW)
def test_sigterm_works_during_an_outage(live_database: str, tmp_path: Path, how: str) -> None:
    go_away, _ = AWAY[how]
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, "--grace=1", jobs=SHORT, url=proxy.url) as worker:
            begin(live_database, str(tmp_path / "never"))
            go_away(proxy)
            pass_time(1.0)
            worker.send(signal.SIGTERM)
            assert worker.wait(40) == 0, worker.output
            assert "outcomes not written" in worker.output
            assert "Traceback" not in worker.output, worker.output
    # What it could not hand back is taken back.
    with scheduler(live_database, jobs=SHORT):
        wait_until(lambda: not Job.objects.using(live_database).exclude(status="completed").exists(), timeout=40)


@pytest.mark.parametrize("how", HOW)
def test_a_drain_waits_for_the_database_to_come_back(live_database: str, tmp_path: Path, how: str) -> None:
    go_away, come_back = AWAY[how]
    until = tmp_path / "leave"
    with proxy_before(url_of(live_database)) as proxy:
        row = tasks.hang_in_thread.enqueue("begun", str(until))
        with scheduler(live_database, "--drain", jobs=SHORT, url=proxy.url) as worker:
            wait_until(lambda: effects(live_database, "begun"))
            go_away(proxy)
            until.touch()
            pass_time(3.0)
            assert worker.running, worker.output
            come_back(proxy)
            assert worker.wait(40) == 0, worker.output
    assert_nothing_was_lost([row])
    assert "Traceback" not in worker.output, worker.output


def test_an_outage_is_told_in_a_few_lines(live_database: str) -> None:
    """One line per agent when it begins and one when it ends, however often they try meanwhile."""
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=SHORT, url=proxy.url) as worker:
            tasks.leave_mark.enqueue("before")
            wait_until(lambda: effects(live_database, "before"))
            before = worker.output.count("\n")
            proxy.cut()
            pass_time(3.0)
            during = worker.output.count("\n") - before
            assert 1 <= during <= 6, worker.output
            proxy.mend()
            tasks.leave_mark.enqueue("after")
            wait_until(lambda: effects(live_database, "after"), timeout=25)
            assert_stops(worker)


def test_a_listener_that_was_cut_off_is_rebuilt_and_looks_again(live_database: str) -> None:
    sleepy = {"POLL": 20, "LEASE": 60, "RENEW": 20}
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=sleepy, url=proxy.url) as worker:
            for label in ("one", "two", "three"):
                tasks.leave_mark.enqueue(label)
                wait_until(lambda label=label: effects(live_database, label), timeout=15, what=label)  # type: ignore[misc]
                assert proxy.terminate_backends(only_listeners=True) == 1
                wait_until(lambda: proxy.links >= 3)
            assert_stops(worker)


def test_a_deaf_listener_costs_at_most_the_poll_interval(live_database: str) -> None:
    sleepy = {"POLL": 2, "LEASE": 60, "RENEW": 20}
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=sleepy, url=proxy.url) as worker:
            tasks.leave_mark.enqueue("heard")
            wait_until(lambda: effects(live_database, "heard"))
            proxy.pause(only_listeners=True)
            row = tasks.leave_mark.enqueue("not heard")
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED, timeout=10)
            claimed_at = Attempt.objects.using(live_database).get(job_id=row.pk).claimed_at
            assert (claimed_at - row.submitted_at).total_seconds() < 2 + 1
            proxy.resume()
            assert_stops(worker)


@pytest.mark.slow
def test_every_backend_of_a_scheduler_may_be_terminated_at_once(live_database: str, tmp_path: Path) -> None:
    until = tmp_path / "leave"
    with proxy_before(url_of(live_database)) as proxy:
        with scheduler(live_database, jobs=SHORT, url=proxy.url) as worker:
            rows = begin(live_database, str(until))
            for _ in range(3):
                assert proxy.terminate_backends() >= 4
                tasks.leave_mark.enqueue("between")
                pass_time(0.5)
            until.touch()
            assert_nothing_was_lost(rows)
            wait_until(lambda: effects(live_database, "between") == 3)
            assert_stops(worker)
