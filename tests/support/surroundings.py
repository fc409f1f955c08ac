"""What one job could leave for the next: language, time zone, context variables, arithmetic."""

from __future__ import annotations

import decimal
from contextvars import ContextVar
from typing import Any

from django.utils import timezone, translation

mark: ContextVar[str] = ContextVar("mark", default="clean")


def disturb() -> None:
    translation.activate("de")
    timezone.activate("Asia/Tokyo")
    mark.set("left behind")
    decimal.getcontext().prec = 3


def report() -> dict[str, Any]:
    return {
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "mark": mark.get(),
        "precision": decimal.getcontext().prec,
    }
