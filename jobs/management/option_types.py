"""What the options of `runscheduler` accept, with messages that say what to give instead."""

from __future__ import annotations

import argparse


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
