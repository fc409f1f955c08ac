"""What the hot statements read: their index, from its head, whatever the planner believes of the full table."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from jobs.domain.execution import Execution
from jobs.domain.status import Status
from jobs.models import Attempt, Job
from jobs.store.claim import Marks, claim
from jobs.store.count import Able, anything_due, anything_unfinished, orphans
from jobs.store.look import look
from jobs.store.pick import Lane, Place, pick_sql
from jobs.store.promote import expire, promote
from jobs.store.prune import prune
from jobs.store.reclaim import overdue
from tests.support.store import Bench

HOSTILE = [
    ("hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"),
    ("nestloop", "hashjoin"),
    ("nestloop", "mergejoin", "indexscan", "indexonlyscan", "bitmapscan"),
    ("indexscan", "indexonlyscan"),
    ("seqscan", "bitmapscan", "incremental_sort", "gathermerge"),
]
QUEUES = ("default", "mail")


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("switched_off", HOSTILE)
def test_a_claim_takes_and_a_promotion_moves_what_was_asked_for_whatever_the_plan(
    bench: Bench, switched_off: tuple[str, ...], analysed: bool
) -> None:
    bench.submit_all([bench.submission(queue=QUEUES[n % 2], priority=n % 7) for n in range(60)])
    bench.submit_all([bench.submission(delay_seconds=60.0) for _ in range(40)])
    bench.turn(120)
    if analysed:
        bench.db.execute("ANALYZE jobs_job")
    for name in switched_off:
        bench.db.execute(f"SET LOCAL enable_{name} = off")
    claimed = bench.claim(free=5, ahead=2, queues=QUEUES)
    assert len(claimed) == 7
    assert count(bench, Status.RUNNING) == 7
    assert Attempt.objects.using(bench.alias).count() == 7
    assert promote(bench.db, limit=10) == 10
    assert count(bench, Status.SCHEDULED) == 30
    for one in claimed:
        bench.close(one)
    assert count(bench, Status.COMPLETED) == 7


def count(bench: Bench, status: Status) -> int:
    return int(Job.objects.using(bench.alias).filter(status=status).count())


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
@pytest.mark.parametrize("switched_off", HOSTILE)
def test_a_claim_locks_only_what_it_takes(live_bench: Bench, switched_off: tuple[str, ...]) -> None:
    bench = live_bench
    bench.submit_all([bench.submission(queue=QUEUES[n % 2]) for n in range(50)])
    free: list[int] = []

    def count_unlocked() -> None:
        found = Job.objects.using(bench.alias).select_for_update(skip_locked=True)
        try:
            with Bench(bench.alias).db.transaction():
                free.append(len(found))
        finally:
            connections[bench.alias].close()

    with bench.db.transaction():
        for name in switched_off:
            bench.db.execute(f"SET LOCAL enable_{name} = off")
        assert len(bench.claim(free=3, queues=QUEUES)) == 3
        thread = threading.Thread(target=count_unlocked)
        thread.start()
        thread.join(20)
    assert free == [47]


FULL = """
    INSERT INTO jobs_job (task, queue, execution, rank, status, run_at, submitted_at, ended_at, started_at)
    SELECT 'tests.work', CASE WHEN n % 3 = 0 THEN 'mail' ELSE 'default' END, 'thread', n % 5, '{status}',
           {run_at}, {base}, {ended_at}, {ended_at}
    FROM {numbers}
"""
ATTEMPTS = """
    INSERT INTO jobs_attempt (job_id, number, worker_id, outcome, lease_until, ended_at)
    SELECT id, 1, '{worker}', 'completed', ended_at, ended_at FROM jobs_job WHERE status = 'completed'
"""


def fill(bench: Bench, rows: int, statuses: tuple[str, ...] = ("pending", "scheduled", "completed")) -> None:
    """That many jobs of each status, with an attempt for each that ended."""
    base = bench.db.adapt(bench.now)
    if bench.db.json_type == "jsonb":
        numbers = f"generate_series(1, {rows}) AS n"
        at = {key: f"'{base}'::timestamptz + {sign} n * interval '1 second'" for key, sign in (("<", "-"), (">", "+"))}
        base = f"'{base}'::timestamptz"
    else:
        numbers = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s)"
        at = {key: f"datetime('{base}', '{sign}' || n || ' seconds')" for key, sign in (("<", "-"), (">", "+"))}
        base = f"'{base}'"
    for status in statuses:
        sql = FULL.format(
            status=status,
            run_at=at[">" if status == "scheduled" else "<"],
            ended_at=at["<"] if status == "completed" else "NULL",
            numbers=numbers,
            base=base,
        )
        bench.db.execute(sql.replace("%", "%%"))
    bench.db.execute(ATTEMPTS.format(worker=bench.owner.id.hex))


@contextmanager
def statements(alias: str) -> Iterator[list[tuple[str, Any]]]:
    """What is sent meanwhile, with its parameters."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        sent.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connections[alias].execute_wrapper(note):
        yield sent


def plans(alias: str, sent: list[tuple[str, Any]]) -> dict[str, str]:
    """The plan of each statement that reads or writes rows, by its text."""
    explain = "EXPLAIN" if connections[alias].vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    found = {}
    for sql, parameters in sent:
        if sql.strip().startswith(("SELECT", "UPDATE", "INSERT", "DELETE", "WITH")):
            with connections[alias].cursor() as cursor:
                cursor.execute(f"{explain} {sql}", parameters)
                found[sql] = "\n".join(str(row[-1]) for row in cursor.fetchall())
    return found


def reads_everything(plan: str) -> bool:
    """Whether it walks over all rows of the hot tables instead of an index made for the question."""
    lines = plan.splitlines()
    whole = [line for line in lines if re.search(r"Seq Scan on jobs_(job|attempt)\b", line)]
    whole += [line for line in lines if re.search(r"\bSCAN jobs_(job|attempt)\b", line) and "INDEX jobs_" not in line]
    return bool(whole)


def sorts(plan: str) -> bool:
    return "Sort" in plan or "TEMP B-TREE" in plan


def size(bench: Bench) -> int:
    return 100_000 if bench.alias == "postgres" else 10_000


def assert_no_plan_reads_everything(bench: Bench, sent: list[tuple[str, Any]]) -> None:
    """Neither as a new table looks to the planner, nor when it knows all about it."""
    for analyse in (False, True):
        if analyse:
            bench.db.execute("ANALYZE")
        found = plans(bench.alias, sent)
        assert found
        bad = {sql: plan for sql, plan in found.items() if reads_everything(plan)}
        assert not bad, "\n".join(f"{sql}\n{plan}" for sql, plan in bad.items())
        for sql, plan in found.items():
            if "AS lane" in sql:
                assert "jobs_job_ready" in plan
                # What a claim has picked by then is numbered, which sorts a few rows.
                assert sql.strip().startswith("WITH") or not sorts(plan), plan


def test_hot_statements_keep_their_index_in_a_full_table(bench: Bench) -> None:
    fill(bench, size(bench))
    lanes = [Lane(queue, execution, 8, 100) for queue in QUEUES for execution in Execution]
    sql, parameters = pick_sql(bench.db, lanes, dict.fromkeys(Execution, (8, 100)))
    with statements(bench.alias) as sent:
        bench.db.rows(sql, **parameters)
        assert look(bench.db, QUEUES).ready
        assert anything_due(bench.db, Able(QUEUES, list(Execution)))
        assert anything_unfinished(bench.db, QUEUES)
        assert orphans(bench.db) == 0
        assert promote(bench.db) == 0
        assert expire(bench.db) == 0
        assert overdue(bench.db) == {}
        assert prune(bench.db, {Status.COMPLETED: timedelta(days=100)}) == 0
    assert_no_plan_reads_everything(bench, sent)


def test_an_idle_look_keeps_its_index_among_old_rows(bench: Bench) -> None:
    fill(bench, size(bench), ("completed", "scheduled"))
    with statements(bench.alias) as sent:
        assert not look(bench.db, QUEUES).anything
        assert not anything_due(bench.db, Able(QUEUES, list(Execution)))
    assert_no_plan_reads_everything(bench, sent)


def test_a_whole_round_keeps_its_indexes_in_a_full_table(bench: Bench) -> None:
    real = [one.job_id for one in bench.submit_all([bench.submission(priority=50) for _ in range(20)])]
    fill(bench, size(bench))
    with statements(bench.alias) as sent:
        claimed = bench.claim(free=20)
        for one in claimed[:10]:
            bench.close(one, result="1")
    assert sorted(one.job_id for one in claimed) == sorted(real)
    if bench.alias == "postgres":
        assert_claim_reads_a_few_pages(bench)
    assert_no_plan_reads_everything(bench, sent)


def assert_claim_reads_a_few_pages(bench: Bench) -> None:
    lanes = [Lane(queue, execution, 8, 0) for queue in QUEUES for execution in Execution]
    sql, parameters = pick_sql(bench.db, lanes, dict.fromkeys(Execution, (8, 0)))
    read = bench.db.rows(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {sql}", **parameters)
    plan = "\n".join(row[0] for row in read)
    hits = [int(number) for number in re.findall(r"shared hit=(\d+)", plan)]
    assert hits, plan
    assert hits[0] < 100, plan


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_claim_and_record_look_rows_up_by_id_and_join_no_list_to_a_list(bench: Bench) -> None:
    """An old snapshot fills the small partial indexes with dead entries; and n times n for n jobs is too much."""
    bench.submit_all([bench.submission(priority=50) for _ in range(100)])
    fill(bench, 20_000, ("completed",))
    bench.db.execute("ANALYZE")
    with statements(bench.alias) as sent:
        claimed = bench.claim(free=100)
        assert all(bench.close(one, result="1").closed for one in claimed[:1])
    for sql, plan in plans(bench.alias, sent).items():
        assert "jobs_attempt_one_open" not in plan, f"{sql}\n{plan}"
        assert "jobs_job_running" not in plan, f"{sql}\n{plan}"
        assert len(re.findall(r"Scan using jobs_job_ready", plan)) <= len(Execution), f"{sql}\n{plan}"
        # The inner side of a nested loop stands last below it, one step deeper.
        inner = re.findall(r"( *)->  Nested Loop.*\n\1      ->.*(?:\n\1       .*)*?\n\1      ->  (\w+ \w+)", plan)
        assert not [scan for _, scan in inner if scan == "CTE Scan"], f"{sql}\n{plan}"


def test_a_claim_goes_on_above_the_place_where_the_last_one_ended(bench: Bench) -> None:
    first, second = (bench.submit().job_id for _ in range(2))
    bench.turn(1)
    late = bench.submit(priority=50).job_id
    marks: Marks = {}
    lane = Lane("default", Execution.THREAD, 1)
    limits = {Execution.THREAD: (1, 0)}

    def take(above: Place | None) -> int:
        lanes = [replace(lane, above=above)]
        [one] = claim(bench.db, bench.owner, lanes, limits=limits, lease_seconds=60.0, marks=marks)
        return one.job_id

    assert take(None) == late
    assert take(marks["default", Execution.THREAD]) == first
    urgent = bench.submit(priority=50).job_id
    assert take(marks["default", Execution.THREAD]) == second
    assert take(None) == urgent
