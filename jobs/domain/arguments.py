"""The arguments of a task's calls: checked against its signature, written as JSON, read back as themselves."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.domain.conversion import Conversion, conversion_for, converts, from_json, to_json
from jobs.domain.errors import InvalidArguments, NotStorable
from jobs.domain.strict_json import Refusal, advice, dumps
from jobs.domain.text import class_path, short_class

if sys.version_info >= (3, 14):
    import annotationlib

    # Names that exist only under TYPE_CHECKING must not make a task unusable.
    _read_signature = functools.partial(inspect.signature, annotation_format=annotationlib.Format.FORWARDREF)
else:
    _read_signature = inspect.signature


class Parameters:
    """What one function takes. Annotations are read at the first use, when the names in them exist.

    Values of annotated date, datetime, time, timedelta, Decimal, UUID and Enum parameters arrive as themselves,
    also optional ones and those inside list[...], tuple[...] and dict[str, ...]. A union of several types, or
    an annotation that cannot be resolved, means plain JSON.
    """

    def __init__(self, function: Callable[..., Any], takes_context: bool) -> None:
        self._function = function
        whole = signature_of(function)
        parameters = list(whole.parameters.values())
        self.signature = whole.replace(parameters=parameters[1:] if takes_context else parameters)
        self.name = getattr(function, "__qualname__", None) or type(function).__qualname__

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, max_bytes: int) -> str:
        """JSON text of `{"args": [...], "kwargs": {...}}`, as the caller passed them.

        Raises `InvalidArguments` with Python's own reason, or with the path to what cannot be stored.
        """
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as wrong:
            raise InvalidArguments(f"{self.name}(): {wrong}") from None
        try:
            plain = self._converted(to_json, args, kwargs)
            return dumps(plain, root="", max_bytes=max_bytes, advise=_advice)
        except NotStorable as refused:
            raise InvalidArguments(f"{self.name}(): {refused}") from None
        except Refusal as refusal:
            raise InvalidArguments(f"{self.name}(): {refusal.at('')}") from None

    def decode(self, stored: object) -> tuple[list[Any], dict[str, Any]]:
        """The call's args and kwargs; `InvalidArguments` names the path when what is stored does not fit."""
        args, kwargs = (stored.get("args"), stored.get("kwargs")) if isinstance(stored, dict) else (None, None)
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise InvalidArguments(f"{self.name}(): the stored arguments are not a list args and a dict kwargs")
        try:
            arrived = self._converted(from_json, args, kwargs)
        except Refusal as refusal:
            raise InvalidArguments(f"{self.name}(), stored: {refusal.at('')}") from None
        return arrived["args"], arrived["kwargs"]

    def _converted(
        self, way: Callable[[Conversion | None, Any], Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        positions, rest, names, other = self._conversions
        arrived_args, arrived_kwargs = list(args), dict(kwargs)
        if not self._has_conversions:
            return {"args": arrived_args, "kwargs": arrived_kwargs}
        for index, value in enumerate(arrived_args):
            conversion = positions[index] if index < len(positions) else rest
            try:
                arrived_args[index] = way(conversion, value)
            except Refusal as refusal:
                refusal.steps += [index, "args"]
                raise
        for name, value in arrived_kwargs.items():
            try:
                arrived_kwargs[name] = way(names.get(name, other), value)
            except Refusal as refusal:
                refusal.steps += [name, "kwargs"]
                raise
        return {"args": arrived_args, "kwargs": arrived_kwargs}

    @functools.cached_property
    def _has_conversions(self) -> bool:
        positions, rest, names, other = self._conversions
        return any((*positions, rest, *names.values(), other))

    @functools.cached_property
    def _conversions(
        self,
    ) -> tuple[list[Conversion | None], Conversion | None, dict[str, Conversion | None], Conversion | None]:
        """By position, for *args, by name, for **kwargs."""
        positions: list[Conversion | None] = []
        names: dict[str, Conversion | None] = {}
        rest = other = None
        for parameter in self.signature.parameters.values():
            conversion = conversion_for(_resolved(parameter.annotation, self._function))
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                rest = conversion
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                other = conversion
            else:
                if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                    positions.append(conversion)
                if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                    names[parameter.name] = conversion
        return positions, rest, names, other


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return _read_signature(function)
    except ValueError:  # a builtin that does not say what it takes
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return None

    def holder() -> None: ...

    holder.__annotations__ = {"value": annotation}
    while isinstance(function, functools.partial):
        function = function.func
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(holder, globalns=names)["value"]
    except Exception:  # noqa: BLE001 - an annotation may be any expression, about names that do not exist at run time
        return None


def _advice(value: object) -> str:
    if converts(value):
        kind = short_class(class_path(type(value)))
        return f"is a {kind}; annotate the parameter with exactly that type and it arrives as itself, or give text"
    return advice(value)
