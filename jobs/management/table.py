"""Rows as aligned lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The head and the rows, each column as wide as its widest cell. What would steer the terminal is spelt out."""
    lines = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def printable(text: str) -> str:
    """On one line, and nothing in it moves the cursor or turns the direction of the text."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
