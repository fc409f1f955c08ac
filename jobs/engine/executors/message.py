"""What a child process says to its parent: hints as lines on one pipe, and the outcome as text."""

from __future__ import annotations

import json
import select
from dataclasses import asdict, dataclass
from typing import Any

from jobs.domain.context import Progress
from jobs.domain.outcome import Ending, Failure, LogLine, Outcome

LINE_BYTES = select.PIPE_BUF
"""Writes up to this size are atomic: many children share the pipe without a lock that a killed one could keep."""


@dataclass(frozen=True, slots=True)
class Ready:
    slot: int


@dataclass(frozen=True, slots=True)
class Started:
    attempt_id: int


@dataclass(frozen=True, slots=True)
class Progressed:
    attempt_id: int
    progress: Progress


Message = Ready | Started | Progressed


def line(message: Message) -> bytes:
    """At most `LINE_BYTES`; a progress message gives way."""
    match message:
        case Ready(slot):
            return _line(["ready", slot])
        case Started(attempt_id):
            return _line(["started", attempt_id])
        case Progressed(attempt_id, progress):
            text = progress.message
            while True:
                written = _line(["progress", attempt_id, progress.done, progress.total, text])
                if len(written) <= LINE_BYTES:
                    return written
                text = text[: len(text) // 2]


def read_line(written: bytes) -> Message | None:
    """None for anything that a child of ours would not say: job code can reach the pipe too."""
    try:
        match json.loads(written):
            case ["ready", int(slot)]:
                return Ready(slot)
            case ["started", int(attempt_id)]:
                return Started(attempt_id)
            case ["progress", int(attempt_id), float(done), float() | None as total, str(text)]:
                return Progressed(attempt_id, Progress(done, total, text))
    except (ValueError, RecursionError):
        pass
    return None


def outcome_text(outcome: Outcome, progress: Progress | None) -> str:
    """Both as JSON; raises TypeError, ValueError or RecursionError when the outcome is not plain data.

    Text, because a result that pickles and does not unpickle breaks a pebble pool.
    """
    return json.dumps([asdict(outcome), progress and asdict(progress)])


def read_outcome(text: str) -> tuple[Outcome, Progress | None]:
    """Both again; raises TypeError, KeyError or ValueError when the text is not one of `outcome_text`."""
    fields, progress = json.loads(text)
    failure: dict[str, Any] | None = fields["failure"]
    outcome = Outcome(
        ending=Ending(fields["ending"]),
        result=fields["result"],
        failure=Failure(**{**failure, "causes": tuple(failure["causes"])}) if failure else None,
        retry_after_seconds=fields["retry_after_seconds"],
        reason=fields["reason"],
        log=tuple(LogLine(**entry) for entry in fields["log"]),
    )
    return outcome, progress and Progress(**progress)


def _line(parts: list[Any]) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode() + b"\n"
