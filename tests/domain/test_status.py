"""The table of legal moves is the one the design draws."""

from __future__ import annotations

from jobs.domain.status import INITIAL, LEGAL_MOVES, TERMINAL, WAITING, AttemptOutcome, Status

DRAWN = """
blocked     -> scheduled pending cancelled
scheduled   -> pending cancelled
pending     -> running scheduled cancelled
running     -> completed failed timed_out cancelled retry_wait pending scheduled
retry_wait  -> pending cancelled failed timed_out
completed   ->
failed      -> pending scheduled
timed_out   -> pending scheduled
cancelled   -> pending scheduled blocked
"""


def test_the_moves_are_those_of_the_design() -> None:
    drawn = {}
    for line in DRAWN.strip().splitlines():
        source, _, targets = line.partition("->")
        drawn[Status(source.strip())] = {Status(target) for target in targets.split()}
    assert {source: set(targets) for source, targets in LEGAL_MOVES.items()} == drawn


def test_every_status_is_waiting_running_or_terminal_and_none_is_two() -> None:
    assert sorted([*WAITING, Status.RUNNING, *TERMINAL]) == sorted(Status)
    assert set(INITIAL) < set(WAITING)


def test_words_are_written_as_their_values() -> None:
    assert f"{Status.RETRY_WAIT} {AttemptOutcome.LOST}" == "retry_wait lost"
