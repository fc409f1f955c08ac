"""How values of annotated types are written as JSON: a date as text, a list of dates as a list of texts."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobs.domain.strict_json import Refusal
from jobs.domain.text import class_path, short_class, shown
from jobs.domain.text_form import TEXT_FORMS

_MAX_DEPTH = 20


class Conversion(Protocol):
    """Both ways raise `Refusal`. `to_json` also takes what `from_json` takes: forms can send only JSON."""

    def to_json(self, value: Any) -> Any: ...
    def from_json(self, stored: Any) -> Any: ...


def conversion_for(annotation: Any, *, depth: int = 0) -> Conversion | None:
    """None: values of this annotation are plain JSON, or cannot be converted unambiguously."""
    annotation = _without_wrapping(annotation)
    if depth > _MAX_DEPTH:  # a type that contains itself
        return None
    if annotation is tuple:
        return Items(None, tuple)
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return Members(annotation) if issubclass(annotation, enum.Enum) else TEXT_FORMS.get(annotation)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        others = [part for part in parts if part is not type(None)]
        return conversion_for(others[0], depth=depth + 1) if len(others) == 1 else None
    inner = [None if part in (Ellipsis, ()) else conversion_for(part, depth=depth + 1) for part in parts]
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return Items(inner[0], tuple)
    if origin is tuple:
        return Fields(tuple(inner) if parts != ((),) else ())
    if origin in (list, Sequence) and inner[0] is not None:
        return Items(inner[0], list)
    if origin in (dict, Mapping) and inner[1] is not None:
        return Values(inner[1])
    return None


def converts(value: object) -> bool:
    """Whether annotating its parameter would make this value storable."""
    return issubclass(type(value), (*TEXT_FORMS, enum.Enum))


def to_json(conversion: Conversion | None, value: Any) -> Any:
    return value if conversion is None or value is None else conversion.to_json(value)


def from_json(conversion: Conversion | None, stored: Any) -> Any:
    return stored if conversion is None or stored is None else conversion.from_json(stored)


class Members:
    """An enum: by value where all values are text or whole numbers, else by name."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self.kind = kind
        self.by_value = issubclass(kind, enum.Flag) or all(
            isinstance(member.value, (str, int)) and not isinstance(member.value, bool) for member in kind
        )

    def to_json(self, value: Any) -> Any:
        if issubclass(type(value), self.kind):
            return value.value if self.by_value else value.name
        self.from_json(value)
        return value

    def from_json(self, stored: Any) -> Any:
        if type(stored) in (str, int):
            try:
                return self.kind(stored) if self.by_value else self.kind[str(stored)]
            except (ValueError, KeyError, TypeError):
                pass
        known = [member.value if self.by_value else member.name for member in self.kind]
        raise Refusal(f"is not a {self.kind.__name__}: {shown(stored)} (one of {ascii(known)[1:-1][:200]})")


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple of one type; a tuple arrives as a tuple."""

    inner: Conversion | None
    kind: type[list[Any]] | type[tuple[Any, ...]]

    def to_json(self, value: Any) -> Any:
        return [_at(index, to_json, self.inner, item) for index, item in enumerate(_sequence(value))]

    def from_json(self, stored: Any) -> Any:
        return self.kind(_at(index, from_json, self.inner, item) for index, item in enumerate(_sequence(stored)))


@dataclass(frozen=True, slots=True)
class Fields:
    """A tuple of fixed length."""

    inner: tuple[Conversion | None, ...]

    def to_json(self, value: Any) -> Any:
        return list(self._each(value, to_json))

    def from_json(self, stored: Any) -> Any:
        return tuple(self._each(stored, from_json))

    def _each(self, value: Any, way: _Way) -> list[Any]:
        items = _sequence(value)
        if len(items) != len(self.inner):
            raise Refusal(f"has {len(items)} items, but its parameter is a tuple of {len(self.inner)}")
        return [_at(index, way, inner, item) for index, (inner, item) in enumerate(zip(self.inner, items, strict=True))]


@dataclass(frozen=True, slots=True)
class Values:
    """A dict with values of one type; its keys are text."""

    inner: Conversion

    def to_json(self, value: Any) -> Any:
        return {key: _at(key, to_json, self.inner, item) for key, item in _pairs(value)}

    def from_json(self, stored: Any) -> Any:
        return {key: _at(key, from_json, self.inner, item) for key, item in _pairs(stored)}


_Way = Callable[["Conversion | None", Any], Any]


def _at(step: object, way: _Way, inner: Conversion | None, item: Any) -> Any:
    try:
        return way(inner, item)
    except Refusal as refusal:
        refusal.steps.append(step if isinstance(step, int) else str(step))
        raise


def _sequence(value: Any) -> Sequence[Any]:
    if issubclass(type(value), (list, tuple)):
        return value  # type: ignore[no-any-return]
    raise Refusal(f"is of type {short_class(class_path(type(value)))}, but its parameter is a list or tuple")


def _pairs(value: Any) -> Any:
    if issubclass(type(value), dict):
        return dict.items(value)
    raise Refusal(f"is of type {short_class(class_path(type(value)))}, but its parameter is a dict")


def _without_wrapping(annotation: Any) -> Any:
    """What a NewType, a `type` statement or Annotated stands for."""
    for _ in range(20):
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            break
    return annotation
