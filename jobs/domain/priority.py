"""Named priorities on the scale of django.tasks: -100 to 100, larger runs first."""

from __future__ import annotations

import enum


class Priority(enum.IntEnum):
    LOW = -50
    MEDIUM = 0
    HIGH = 50
    CRITICAL = 100


LOWEST, HIGHEST = -100, 100
