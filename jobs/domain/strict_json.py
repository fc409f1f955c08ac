"""JSON text that both databases keep exactly, or a refusal that names the culprit.

Stored as their plain value: subclasses of str, int, float, list, dict (an IntEnum, an OrderedDict). Changed:
tuples become lists, -0.0 becomes 0.0. Everything else that would not come back equal is refused.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NoReturn

from jobs.domain.errors import NotStorable
from jobs.domain.text import class_path, short_class

MAX_DEPTH = 100
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1
"""Beyond 64 bits SQLite's JSON functions turn an integer into a float."""

_quoted = json.JSONEncoder(ensure_ascii=False).encode
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Refusal(Exception):
    """Raised inside a value; every level on the way up adds its step, so that the path costs nothing until then."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.steps: list[str | int] = []

    def at(self, root: str) -> str:
        """The whole sentence: path, then problem."""
        path = (root + "".join(map(_step, reversed(self.steps)))).lstrip(".") or "the value"
        if len(path) > 200:
            path = f"{path[:120]}...{path[-70:]}"
        return f"{path} {self.problem}"


def dumps(value: object, *, root: str, max_bytes: int, advise: Callable[[object], str] | None = None) -> str:
    """Compact JSON; `NotStorable` names the path from `root`, as in `result.rows[3].price`.

    Takes no longer than `max_bytes` allow, however large or tangled the value is. `advise` says what to do
    about a value of a type that JSON does not have.
    """
    writer = _Writer(max_bytes, advise or advice)
    try:
        writer.write(value, MAX_DEPTH)
    except Refusal as refusal:
        if writer.left < 0:  # the place where the limit was reached says nothing about the culprit
            refusal.steps.clear()
        raise NotStorable(refusal.at(root)) from None
    return "".join(writer.pieces)


def advice(value: object) -> str:
    """What to do about a value of a type that JSON does not have."""
    if is_model_instance(value):
        return "is a model instance; give its key (pk) and read it again where it is needed"
    kind = type(value)
    if issubclass(kind, enum.Enum):
        return f"is a {short_class(class_path(kind))} member; give its value"
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return f"is {kind.__name__}; decode it to text, or give the name of a file"
    if issubclass(kind, (set, frozenset)):
        return f"is a {kind.__name__}, which has no order; give a sorted list"
    name = short_class(class_path(kind))
    return f"is of type {name}, which JSON does not have; convert it to text, a number, a list or a dict"


def is_model_instance(value: object) -> bool:
    """By its `_meta` and `pk`, so that a lazy object around an instance counts as well."""
    try:
        return not isinstance(value, type) and hasattr(value, "_meta") and hasattr(value, "pk")
    except Exception:  # noqa: BLE001 - an attribute of the caller's object may raise anything
        return False


class _Writer:
    """Asks for the real type of each value, never for `__class__`: a lazy object lies about it."""

    __slots__ = ("advise", "ancestors", "left", "max_bytes", "pieces")

    def __init__(self, max_bytes: int, advise: Callable[[object], str]) -> None:
        self.advise = advise
        self.max_bytes = max_bytes
        self.left = max_bytes
        self.pieces: list[str] = []
        self.ancestors: set[int] = set()

    def write(self, value: Any, depth_left: int) -> None:
        kind = type(value)
        if issubclass(kind, str):
            self.put(self.text(value))
        elif value is None:
            self.put("null")
        elif kind is bool:
            self.put("true" if value else "false")
        elif issubclass(kind, int):
            self.put(_integer(value))
        elif issubclass(kind, float):
            self.put(_number(value))
        elif issubclass(kind, (dict, list, tuple)):
            self.container(value, kind, depth_left)
        else:
            raise Refusal(self.advise(value))

    def container(self, value: Any, kind: type, depth_left: int) -> None:
        if id(value) in self.ancestors:
            raise Refusal("refers back to something that contains it")
        if depth_left == 0:
            raise Refusal(f"is nested deeper than {MAX_DEPTH} levels")
        self.ancestors.add(id(value))
        if issubclass(kind, dict):
            self.mapping(value, depth_left - 1)
        elif issubclass(kind, list):
            self.array(list.__iter__(value), list.__len__(value), depth_left - 1)
        else:
            self.array(tuple.__iter__(value), tuple.__len__(value), depth_left - 1)
        self.ancestors.discard(id(value))

    def array(self, items: Iterable[Any], count: int, depth_left: int) -> None:
        if count * 2 > self.left:
            self.refuse_size()
        self.put("[")
        index = 0
        try:
            for index, item in enumerate(items):
                if index:
                    self.put(",")
                self.write(item, depth_left)
        except Refusal as refusal:
            refusal.steps.append(index)
            raise
        self.put("]")

    def mapping(self, value: dict[Any, Any], depth_left: int) -> None:
        if dict.__len__(value) * 5 > self.left:
            self.refuse_size()
        items = tuple(dict.items(value))  # a copy, because another thread may still be changing the dict
        names: set[str] = set()
        self.put("{")
        for key, item in items:
            if not issubclass(type(key), str):
                raise Refusal(f"has a key that is {_shown(key)}; JSON has only text keys, so it would change")
            name = str.__str__(key)
            try:
                # A subclass of str may compare by case or by identity, and so stand beside its own text.
                if name in names:
                    raise Refusal("is the text of two keys")
                if names:
                    self.put(",")
                names.add(name)
                self.put(self.text(name))
                self.put(":")
                self.write(item, depth_left)
            except Refusal as refusal:
                refusal.steps.append(name)
                raise
        self.put("}")

    def text(self, value: str) -> str:
        if str.__len__(value) > self.left:
            self.refuse_size()
        plain = str.__str__(value)
        if "\0" in plain:
            raise Refusal("contains a NUL character, which PostgreSQL cannot store")
        if not plain.isascii():
            try:
                plain.encode()
            except UnicodeEncodeError:
                raise Refusal("contains a lone surrogate, which is not valid text") from None
        return _quoted(plain)

    def put(self, piece: str) -> None:
        self.left -= len(piece) if piece.isascii() else len(piece.encode())
        if self.left < 0:
            self.refuse_size()
        self.pieces.append(piece)

    def refuse_size(self) -> NoReturn:
        self.left = -1
        raise Refusal(f"takes more than {self.max_bytes} bytes as JSON; store the data elsewhere and give its key")


def _integer(value: int) -> str:
    plain = int.__int__(value)
    if not SMALLEST_INTEGER <= plain <= LARGEST_INTEGER:
        raise Refusal("is an integer of more than 64 bits; give it as text")
    return int.__repr__(plain)


def _number(value: float) -> str:
    plain = float.__float__(value)
    if not math.isfinite(plain):
        raise Refusal(f"is {plain!r}, which JSON does not have")
    text = repr(plain + 0.0)  # jsonb has no -0.0
    if "e" not in text:
        return text
    # jsonb would give 1e+16 back as an integer; written out, with a fraction, it stays a float.
    text = format(Decimal(text), "f")
    return text if "." in text else f"{text}.0"


def _shown(key: object) -> str:
    if key is None or type(key) in (bool, float) or (type(key) is int and key.bit_length() < 100):
        return repr(key)
    return f"of type {short_class(class_path(type(key)))}"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _IDENTIFIER.fullmatch(step) else f"[{step[:60]!a}]"
