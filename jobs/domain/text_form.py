"""Types with an exact text form: dates, times, decimals, UUIDs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from jobs.domain.strict_json import Refusal
from jobs.domain.text import class_path, short_class, shown

_EXACT = Context(prec=60)
"""The caller's own decimal context may round to any precision."""


@dataclass(frozen=True, slots=True)
class Text:
    """A type with an exact text form."""

    kind: type
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    example: str
    numbers: tuple[type, ...] = ()
    """JSON number types that are read like their text."""
    other: type | None = None
    """A subclass with more to it, which would be cut down to this type."""

    def to_json(self, value: Any) -> Any:
        if issubclass(type(value), self.kind) and not (self.other and issubclass(type(value), self.other)):
            return self.write(value)
        self.from_json(value)
        return value

    def from_json(self, stored: Any) -> Any:
        if issubclass(type(stored), str) or type(stored) in self.numbers:
            try:
                return self.read(str(stored))
            except (ValueError, ArithmeticError):
                raise Refusal(f"is not a {self.kind.__name__}: {shown(stored)} (as in {self.example!r})") from None
        wanted = f"its parameter is a {self.kind.__name__} (as text: {self.example!r})"
        raise Refusal(f"is of type {short_class(class_path(type(stored)))}, but {wanted}")


def _write_time(value: time) -> str:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise Refusal(
            "is a time in a zone without a fixed offset, which would be lost; give a datetime or a naive time"
        )
    _require_whole_seconds(value)
    return time.isoformat(value)


def _write_datetime(value: datetime) -> str:
    _require_whole_seconds(value)
    return datetime.isoformat(value)


def _require_whole_seconds(value: time | datetime) -> None:
    offset = value.utcoffset()
    if offset is not None and offset.microseconds:  # Python reads an offset below one second as UTC
        raise Refusal(f"has the offset {offset}, which is not a whole number of seconds")


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise Refusal(f"is the Decimal {value}, which is no number")
    return Decimal.__str__(value)


def _read_decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise InvalidOperation
    return value


def _write_timedelta(value: timedelta) -> str:
    """Exact seconds, as in "-1.500000": total_seconds() loses microseconds beyond 285 years."""
    microseconds = value // timedelta(microseconds=1)
    whole, rest = divmod(abs(microseconds), 1_000_000)
    return f"{'-' if microseconds < 0 else ''}{whole}" + (f".{rest:06d}" if rest else "")


def _read_timedelta(text: str) -> timedelta:
    microseconds = _EXACT.multiply(_read_decimal(text), Decimal(1_000_000))
    return timedelta(microseconds=int(_EXACT.to_integral_value(microseconds)))


def _read_datetime(text: str) -> datetime:
    # Python 3.10 does not read the Z that JavaScript and most APIs write.
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)


TEXT_FORMS: dict[type, Text] = {
    date: Text(date, date.isoformat, date.fromisoformat, "2026-01-31", other=datetime),
    datetime: Text(datetime, _write_datetime, _read_datetime, "2026-01-31T12:00:00+00:00"),
    time: Text(time, _write_time, time.fromisoformat, "12:30:00"),
    timedelta: Text(timedelta, _write_timedelta, _read_timedelta, "90.5", numbers=(int, float)),
    Decimal: Text(Decimal, _write_decimal, _read_decimal, "19.99", numbers=(int,)),
    uuid.UUID: Text(uuid.UUID, uuid.UUID.__str__, uuid.UUID, "12345678-1234-5678-1234-567812345678"),
}
