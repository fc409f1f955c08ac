"""A schedule that wants attention, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.domain.advance import Timing
from jobs.domain.recurrence.overlap import Overlap


@dataclass(frozen=True, slots=True)
class DueSchedule:
    id: int
    name: str
    task: str
    arguments: Mapping[str, Any]
    """`{"args": [...], "kwargs": {...}}`."""
    options: Mapping[str, Any]
    """Keywords of `task.using(...)`."""
    factory: str
    timing: Timing
    """Without a planned instant when the rule was edited since it was computed."""
    overlap: Overlap
    paused: bool
    outdated_at: datetime | None
    """The instant that was planned under the rule as it was before an edit."""
    asked_by: str
    """Who asked to skip the next one."""
    why: str
    row: tuple[Any, ...]
    """Exactly as read: whoever writes makes sure that it still stands so."""

    def __str__(self) -> str:
        return f"schedule {self.name!r}"
