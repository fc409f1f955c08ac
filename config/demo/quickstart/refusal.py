"""Why quickstart does not start."""

from __future__ import annotations

from django.core.management import CommandError


class Refused(CommandError):
    """The database was not touched; the message says in one line why, and what to do. Exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, returncode=2)
