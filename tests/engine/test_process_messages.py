"""What crosses between a child process and its parent."""

from __future__ import annotations

import select

import pytest

from jobs.domain.context import Progress
from jobs.domain.outcome import Ending, Failure, LogLine, Outcome
from jobs.domain.stop import StopReason
from jobs.engine.executors import verdict
from jobs.engine.executors.message import (
    Message,
    Progressed,
    Ready,
    Started,
    line,
    outcome_text,
    read_line,
    read_outcome,
)
from tests.support.ear import claim

BIG = 2**62


@pytest.mark.parametrize("said", [Ready(3), Started(BIG), Progressed(BIG, Progress(1.0, None, "half-way\n"))])
def test_a_line_is_read_as_it_was_said(said: Message) -> None:
    written = line(said)
    assert written.count(b"\n") == 1
    assert read_line(written) == said


def test_a_line_is_never_too_long_to_be_written_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.engine.executors.message.LINE_BYTES", 512)  # macOS
    written = line(Progressed(BIG, Progress(0.1 + 0.2, 1e300, "\U0001f40c" * 200)))
    assert len(written) <= min(512, select.PIPE_BUF)
    assert isinstance(read_line(written), Progressed)


@pytest.mark.parametrize(
    "junk", [b"", b"{}", b"\xff\xfe", b'["started"]', b'["progress",1,"x",null,""]', b"[" * 100_000]
)
def test_junk_on_the_pipe_is_no_message(junk: bytes) -> None:
    assert read_line(junk) is None


def test_an_outcome_is_read_as_it_was_written() -> None:
    outcome = Outcome(
        Ending.FAILED,
        failure=Failure("a.B", "no", "Traceback", causes=("c.D",), module="m", function="f"),
        retry_after_seconds=1.5,
        reason="why",
        log=(LogLine(0.5, "INFO", "x", "y"),),
    )
    assert read_outcome(outcome_text(outcome, Progress(1.0, 2.0, "z"))) == (outcome, Progress(1.0, 2.0, "z"))
    assert read_outcome(outcome_text(Outcome(Ending.COMPLETED), None)) == (Outcome(Ending.COMPLETED), None)


@pytest.mark.parametrize(
    ("ending", "reason", "counts_as"),
    [
        (Ending.COMPLETED, None, Ending.COMPLETED),
        (Ending.COMPLETED, StopReason.CANCEL, Ending.COMPLETED),
        (Ending.COMPLETED, StopReason.INTERRUPT, Ending.COMPLETED),
        (Ending.COMPLETED, StopReason.TIMEOUT, Ending.TIMED_OUT),
        (Ending.FAILED, None, Ending.FAILED),
        (Ending.FAILED, StopReason.CANCEL, Ending.CANCELLED),
        (Ending.SNOOZED, StopReason.INTERRUPT, Ending.INTERRUPTED),
        (Ending.FAILED, StopReason.TIMEOUT, Ending.TIMED_OUT),
    ],
)
def test_who_asked_a_run_to_stop_decides_how_it_ended(
    ending: Ending, reason: StopReason | None, counts_as: Ending
) -> None:
    assert verdict.settled(claim("any"), Outcome(ending), reason).ending is counts_as


def test_an_outcome_that_names_the_request_keeps_its_traceback() -> None:
    ours = Outcome(Ending.TIMED_OUT, failure=Failure("jobs.TimedOut", "late", "Traceback"))
    assert verdict.settled(claim("any"), ours, StopReason.TIMEOUT) is ours
