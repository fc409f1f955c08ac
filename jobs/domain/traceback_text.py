"""An exception and its causes as bounded text, in the manner of Python's own tracebacks.

The standard traceback module is not used: it formats chains of any length, and asks the job's own objects for
suggestions.
"""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from jobs.domain.text import class_path, clean_text, short_class

MESSAGE_BYTES = 4 * 1024
MAX_CAUSES = 10
HEAD_FRAMES, TAIL_FRAMES = 20, 60
SHOWN_MEMBERS = 5

_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"

# Read past whatever a subclass puts in the way.
_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__
_suppresses_context = BaseException.__dict__["__suppress_context__"].__get__
traceback_of = BaseException.__dict__["__traceback__"].__get__


def message_of(exception: BaseException) -> str:
    try:
        return clean_text(str.__str__(str(exception)), MESSAGE_BYTES)
    except BaseException:  # noqa: BLE001 - a __str__ may do anything, sys.exit included
        return "<the exception's __str__ failed>"


def chain_of(exception: BaseException) -> list[tuple[BaseException, str]]:
    """The exception and its causes, outermost first, each with the sentence that joins it to the one above."""
    links: list[tuple[BaseException, str]] = [(exception, "")]
    seen = {id(exception)}
    while len(links) <= MAX_CAUSES:
        newest = links[-1][0]
        cause: BaseException | None = _cause_of(newest)
        joint = _CAUSED
        if cause is None and not _suppresses_context(newest):
            cause, joint = _context_of(newest), _DURING
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        links.append((cause, joint))
    return links


def chain_text(chain: list[tuple[BaseException, str]]) -> Iterator[str]:
    for link, joint in reversed(chain):
        yield from _exception_text(link)
        yield joint


def _exception_text(exception: BaseException) -> Iterator[str]:
    first = traceback_of(exception)
    if first is not None:
        yield "Traceback (most recent call last):\n"
        yield from _frames_text(first)
    message = message_of(exception)
    name = short_class(class_path(type(exception)))
    yield f"{name}: {message}\n" if message else f"{name}\n"
    for note in _listed(exception, "__notes__")[0]:
        if issubclass(type(note), str):
            yield f"{clean_text(str.__str__(note), MESSAGE_BYTES)}\n"
    members, left_out = _listed(exception, "exceptions")
    for member in members:
        # One level deep: a group inside a group shows its own message only.
        if issubclass(type(member), BaseException):
            text = "".join(_member_text(member))
            yield "".join(f"  | {line}" for line in text.splitlines(keepends=True))
    if left_out and members and issubclass(type(members[0]), BaseException):
        yield f"  | ... and {left_out} more exceptions\n"


def _member_text(member: BaseException) -> Iterator[str]:
    first = traceback_of(member)
    if first is not None:
        yield from _frames_text(first)
    yield f"{short_class(class_path(type(member)))}: {message_of(member)}\n"


def _listed(exception: BaseException, attribute: str) -> tuple[list[Any], int]:
    """The first few items of a list or tuple attribute, and how many more there are."""
    try:
        items = getattr(exception, attribute, ())
        if isinstance(items, (list, tuple)):
            return list(items[:SHOWN_MEMBERS]), max(0, len(items) - SHOWN_MEMBERS)
    except BaseException:  # noqa: BLE001 - an attribute may be a property of the job's own
        return [], 0
    return [], 0


def steps_of(first: TracebackType | None) -> Iterator[TracebackType]:
    while first is not None:
        yield first
        first = first.tb_next


def _frames_text(first: TracebackType) -> Iterator[str]:
    head: list[TracebackType] = []
    tail: deque[TracebackType] = deque(maxlen=TAIL_FRAMES)
    total = 0
    for total, step in enumerate(steps_of(first), start=1):
        if total <= HEAD_FRAMES:
            head.append(step)
        else:
            tail.append(step)
    yield from map(_frame_text, head)
    left_out = total - len(head) - len(tail)
    if left_out:
        yield f"  ... {left_out} frames left out ...\n"
    yield from map(_frame_text, tail)


def _frame_text(step: TracebackType) -> str:
    code = step.tb_frame.f_code
    text = f'  File "{code.co_filename}", line {step.tb_lineno}, in {code.co_name}\n'
    try:
        source = linecache.getline(code.co_filename, step.tb_lineno, step.tb_frame.f_globals).strip()
    except BaseException:  # noqa: BLE001 - generated code has impossible file names and loaders
        source = ""
    return f"{text}    {source[:200]}\n" if source else text
