"""Checks of single options: each gives the value as it is kept, or raises `InvalidOption` with the option's name."""

from __future__ import annotations

import difflib
import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobs.domain.errors import InvalidOption, NotStorable
from jobs.domain.strict_json import dumps
from jobs.domain.text import shown

Check = Callable[[Any], Any]

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def checked_text(value: object, name: str, longest: int) -> str:
    """Plain text of 1 to `longest` characters without control characters, which indexes and logs can hold."""
    if not issubclass(type(value), str):
        raise InvalidOption(f"{name}={shown(value)}: give text")
    text = str.__str__(value)
    if not 1 <= len(text) <= longest:
        raise InvalidOption(f"{name} must have 1 to {longest} characters; this one has {len(text)}")
    if _UNPRINTABLE.search(text):
        raise InvalidOption(f"{name}={shown(text)} contains a control character or a lone surrogate")
    return text


def refuse_unknown(given: Mapping[str, object], known: Iterable[str], owner: str) -> None:
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise InvalidOption(f"{owner} has no option {name!r}{hint} It has: {', '.join(sorted(known))}")


def whole_number(name: str, smallest: int, largest: int) -> Check:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
            raise InvalidOption(f"{name}={shown(value)}: give a whole number from {smallest} to {largest}")
        return int(value)

    return check


def truth(name: str) -> Check:
    def check(value: object) -> bool:
        if not isinstance(value, bool):
            raise InvalidOption(f"{name}={shown(value)}: give True or False")
        return value

    return check


def member(name: str, choices: type[enum.Enum], nothing: object) -> Check:
    def check(value: object) -> object:
        if value is None:
            return nothing
        try:
            return choices(value)
        except ValueError:
            known = ", ".join(repr(choice.value) for choice in choices)
            raise InvalidOption(f"{name}={shown(value)}: give one of {known}") from None

    return check


def small_json(value: object, name: str, max_bytes: int) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidOption(f"{name}={shown(value)}: give a dict")
    try:
        stored: dict[str, Any] = json.loads(dumps(dict(value), root=name, max_bytes=max_bytes))
    except NotStorable as refused:
        raise InvalidOption(str(refused)) from None
    return stored
