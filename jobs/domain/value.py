"""Plain values of which every run makes a few: frozen to the type checker, and cheap to make."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TypeVar

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:
    from typing_extensions import dataclass_transform

Made = TypeVar("Made")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(made: type[Made]) -> type[Made]:
    """A slotted dataclass that may not be changed: mypy says so, not the interpreter.

    `frozen=True` sets every field by a call, which made a claim of 20 fields cost 5.9 us instead of 1.8.
    """
    return dataclass(slots=True, unsafe_hash=True)(made)
