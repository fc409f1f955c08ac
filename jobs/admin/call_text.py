"""Calls and their results as text for people, never longer than a page can bear."""

from __future__ import annotations

import inspect
import json
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.domain.task import TaskDefinition

PREVIEW = 200
"""Characters of the stored JSON that a list reads."""
SHOWN = 20_000
SHORT = 80


def preview(stored: str | None) -> str:
    """The first characters of stored arguments as a call would write them: `42, copy_to="ana"`."""
    if not stored:
        return ""
    try:
        arguments = json.loads(stored)
        text = ", ".join(
            [
                *map(_compact, arguments["args"]),
                *(f"{name}={_compact(one)}" for name, one in arguments["kwargs"].items()),
            ]
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        # Cut within the JSON, or not written by this project.
        text = stored.replace('{"args": [', "", 1).replace('{"args":[', "", 1)
        return _cut(text, SHORT) if len(text) > SHORT else f"{text}…"
    return _cut(text, SHORT)


def short_name(task: str) -> SafeString:
    """The last part of a dotted name; the whole when pointed at."""
    return format_html('<span title="{}">{}</span>', task, task.rpartition(".")[2] or task)


def pretty(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}\n… {len(text) - SHOWN} more characters"


def signature_text(definition: TaskDefinition) -> str:
    """What the task takes, as its author wrote it."""
    signature = definition.parameters.signature
    parameters = [
        one.replace(annotation=_Bare(one.annotation)) if isinstance(one.annotation, str) else one
        for one in signature.parameters.values()
    ]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    try:
        return _cut(str(plain), 300)
    except Exception:  # noqa: BLE001 - the repr of somebody's default value may raise anything
        return "(…)"


def summary(definition: TaskDefinition) -> str:
    """First line of the docstring."""
    return next(iter((inspect.getdoc(definition.function) or "").splitlines()), "")


class _Bare:
    """Prints a postponed annotation without its quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
