"""A host's clock that a test puts forward or back."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Any


class _AnyDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class Stepped(datetime, metaclass=_AnyDatetime):
    """The host's clock, put forward or back; in place of `datetime` in a module."""

    by = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + cls.by
