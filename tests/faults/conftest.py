"""Every fault test on a live database ends with the checker of promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.promises import checked

# Outages, frozen and killed processes take their leases' time: `python -m pytest -m slow tests/faults tests/system`.
LONG = (
    "test_crashes",
    "test_dead_threads",
    "test_engine_points",
    "test_frozen_workers",
    "test_hostile_outcomes",
    "test_locked_sqlite",
    "test_long_jobs",
    "test_loops",
    "test_lost_answers",
    "test_missing_tasks",
    "test_near_the_limit",
    "test_outage",
    "test_sessions",
    "test_writers",
)

# One short case of each fault runs always, a minute together.
QUICK = (
    "test_a_body_does_not_begin_when_its_worker_was_frozen_between_claim_and_start[leave_mark-postgres]",
    "test_a_deaf_listener_costs_at_most_the_poll_interval[postgres]",
    "test_a_host_name_that_does_not_resolve_for_a_while[postgres]",
    "test_a_process_whose_agent_died_exits_with_3_and_hands_its_jobs_back[jobs-planner-postgres]",
    "test_a_statement_that_fails_costs_no_claim_its_run[sqlite-the record-after]",
    "test_a_writer_that_holds_sqlite_for_longer_than_the_busy_timeout[sqlite]",
    "test_an_at_most_once_job_killed_while_only_claimed_runs_later[postgres]",
    "test_an_exception_that_fights_back_is_one_failure_of_each_attempt[sqlite-thread]",
    "test_an_occurrence_that_fails_anywhere_is_made_once[postgres-its commit-after]",
    "test_an_old_release_leaves_the_jobs_of_a_new_one_to_it_and_both_work_on[postgres]",
    "test_an_open_transaction_is_rolled_back_and_said[postgres-begin]",
    "test_each_job_runs_once_and_is_recorded_once[outcome-answer lost-postgres]",
    "test_jobs_that_end_near_their_limit_leave_nothing_to_the_next[postgres-thread-120]",
    "test_no_code_below_the_doors_reads_the_host_clock_but_for_sqlite",
    "test_submitting_on_postgresql_does_not_ask_the_host_clock[postgres]",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem in LONG and item.name not in QUICK:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def promises(request: pytest.FixtureRequest) -> Iterator[None]:
    # What a killed scheduler held at the very end may be over for as long as a test takes to end.
    yield from checked(request, overdue_seconds=30.0)
