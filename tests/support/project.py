"""A Django project of a test's own, in a directory of its own: how a user's code meets the app."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.ground import ROOT
from tests.support.processes import ChildProcess, run_process

SETTINGS = """
SECRET_KEY = "only-for-tests-0123456789abcdefghijklmnopqrstuvwxyz"
INSTALLED_APPS = {apps!r}
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
"""


class Project:
    """Files by path under `directory`; each folder named in `apps` is an installed app, before or after ours."""

    def __init__(self, directory: Path, apps: list[str], files: Mapping[str, str]) -> None:
        self.directory = directory
        given = {**{f"{app}/__init__.py": "" for app in apps if app != "jobs"}, **files}
        given["settings.py"] = SETTINGS.format(apps=apps) + given.get("settings.py", "")
        for name, text in given.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def python(self, code: str, *, expect: int = 0) -> str:
        """What the code prints, to either stream; it begins before Django is set up."""
        return self._run(["-c", textwrap.dedent(code)], expect)

    def manage(self, *arguments: str, expect: int = 0) -> str:
        return self._run(["-m", "django", *arguments], expect)

    def running(self, *arguments: str) -> AbstractContextManager[ChildProcess]:
        """A management command that is not waited for."""
        return self._process(["-m", "django", *arguments])

    def _run(self, arguments: list[str], expect: int) -> str:
        with self._process(arguments) as child:
            assert child.wait(60) == expect, child.output
            return child.output

    def _process(self, arguments: list[str]) -> AbstractContextManager[ChildProcess]:
        environment = {
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": os.pathsep.join([str(self.directory), str(ROOT)]),
        }
        return run_process([sys.executable, *arguments], environment=environment, cwd=self.directory)
