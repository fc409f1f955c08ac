"""Values of environment variables that mean one of a few things; anything else is refused, not guessed."""

from __future__ import annotations

import os
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

_YES = ("1", "true", "yes", "on", "y", "t", "ok")
_NO = ("0", "false", "no", "off", "n", "f", "")


def flag(name: str) -> bool:
    """Off when it is not set. Raises ImproperlyConfigured."""
    given = os.environ.get(name, "").strip().lower()
    if given not in _YES + _NO:
        raise ImproperlyConfigured(f"{name}={os.environ[name]!r}: give 1 or 0")
    return given in _YES


def choice(name: str, choices: Sequence[str]) -> str:
    """One of the choices, as it is written there; the first when the variable is not set. Raises
    ImproperlyConfigured."""
    given = os.environ.get(name) or choices[0]
    for one in choices:
        if one.lower() == given.lower():
            return one
    raise ImproperlyConfigured(f"{name}={given!r}: give one of {', '.join(choices)}")
