"""What the options of the commands accept, with messages that say what to give instead."""

from __future__ import annotations

import argparse
import contextlib
from datetime import datetime

MOST_PREVIEWED = 1_000


def slots(text: str) -> int:
    return _whole(text, 0)


def positive(text: str) -> int:
    return _whole(text, 1)


def _whole(text: str, smallest: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < smallest:
        raise argparse.ArgumentTypeError(f"give a whole number from {smallest}, not {text!r}")
    return int(text)


def seconds(text: str) -> float:
    try:
        given = float(text)
    except ValueError:
        given = -1.0
    if not 0 <= given < 1e6:
        raise argparse.ArgumentTypeError(f"give seconds from 0, not {text!r}")
    return given


def queues(text: str) -> dict[str, int | None]:
    served: dict[str, int | None] = {}
    for part in text.split(","):
        name, separator, most = part.strip().partition(":")
        if not name:
            raise argparse.ArgumentTypeError(f"give names such as mail:4,default, not {text!r}")
        served[name] = positive(most) if separator else None
    return served


def preview_count(text: str) -> int:
    count = _whole(text, 1)
    if count > MOST_PREVIEWED:
        raise argparse.ArgumentTypeError(f"give a whole number from 1 to {MOST_PREVIEWED}, not {text!r}")
    return count


def instant(text: str) -> datetime:
    """Naive unless the text names an offset."""
    given: datetime | None = None
    with contextlib.suppress(ValueError):
        given = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    if given is None or not 1970 <= given.year < 9000:
        raise argparse.ArgumentTypeError(f"give a day or a time, such as 2027-03-13 or 2027-03-13T08:00, not {text!r}")
    return given
