"""The tests' own Django app; in a child process it can do harm at a named function."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.apps import AppConfig


class SupportConfig(AppConfig):
    name = "tests.support"
    label = "support"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        _harm_before(os.environ.get("TEST_KILL_BEFORE", ""), signal.SIGKILL)
        _harm_before(os.environ.get("TEST_FREEZE_BEFORE", ""), signal.SIGSTOP)


def _harm_before(path: str, number: signal.Signals) -> None:
    """The process gets the signal when the function is first called. `path`: as the caller's module knows it.

    The file that TEST_HARMED names is there afterwards.
    """
    if not path:
        return
    module_name, _, name = path.rpartition(".")
    module = importlib.import_module(module_name)
    real: Callable[..., Any] = getattr(module, name)

    def harmed(*args: Any, **kwargs: Any) -> Any:
        setattr(module, name, real)
        if trace := os.environ.get("TEST_HARMED"):
            Path(trace).touch()
        os.kill(os.getpid(), number)
        threading.Event().wait(0.3)  # another thread may take the signal, and this one run on for a moment
        return real(*args, **kwargs)

    setattr(module, name, harmed)
