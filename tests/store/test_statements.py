"""What the connection's cache of compiled statements keeps: few texts, and nothing large."""

from __future__ import annotations

import pytest
from django.db import connections

from jobs.domain.execution import Execution
from jobs.domain.outcome import Failure
from jobs.domain.status import Status
from jobs.store.database import LARGE
from jobs.store.pick import Lane, Room, taken_sql
from tests.support.store import Bench


def test_a_claim_is_the_same_statement_whatever_its_numbers(database: str) -> None:
    bench = Bench(database)
    texts = set()
    for free in range(1, 20):
        lanes = [Lane("default", execution, free, free * 3) for execution in Execution]
        room = Room(dict.fromkeys(Execution, (free, free * 3)), at_most=free * 5, queues={"default": free * 7})
        texts.add(taken_sql(bench.db, lanes, room, ())[0])
    assert len(texts) == 1


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_keeps_no_large_outcome_in_a_compiled_statement(database: str) -> None:
    """Each statement runs once more, over no records: nothing else unbinds what it was given."""
    bench = Bench(database)
    raw = connections[database].connection
    runs = []
    for message in ("short", "x" * LARGE):
        bench.submit()
        (one,) = bench.claim()
        said: list[str] = []
        raw.set_trace_callback(said.append)
        bench.close(one, Status.FAILED, failure=Failure("builtins.ValueError", message, "Traceback"), failures=1)
        raw.set_trace_callback(None)
        runs.append(sum("json_extract" in sql for sql in said))
        assert bench.status(one.job_id) == Status.FAILED
    assert runs[1] == 2 * runs[0] > 0
