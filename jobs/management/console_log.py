"""Show the scheduler's log lines in a project that has not said where they go."""

from __future__ import annotations

import logging


def show_log() -> None:
    """What `jobs` logs from INFO up goes to standard error, unless the project's LOGGING has a handler for it."""
    logger = logging.getLogger("jobs")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("{asctime} {levelname:<7} {name}: {message}", style="{"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
