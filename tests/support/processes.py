"""Child processes under a test's control: their output is read as it comes, and none outlives its block."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.support.ground import ROOT

# What the surrounding shell says about the project must not reach a child by accident.
_PROJECT_VARIABLES = ("DATABASE_URL", "DEBUG", "DJANGO_SETTINGS_MODULE", "HTTPS", "SECRET_KEY", "TEST_JOBS")


class ChildProcess:
    """A running command; standard output and standard error are kept together, line by line."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._changed = threading.Condition()
        self._lines: list[str] = []
        self._at_end = False
        self._popen = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, name=f"output of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        with self._changed:
            return "".join(self._lines)

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def wait_for(self, pattern: str, timeout: float = 30) -> re.Match[str]:
        """The first match of `pattern` in one line of its output, also one that was printed already."""
        searched = 0
        give_up_at = time.monotonic() + timeout
        with self._changed:
            while True:
                for line in self._lines[searched:]:
                    if match := re.search(pattern, line):
                        return match
                searched = len(self._lines)
                left = give_up_at - time.monotonic()
                if self._at_end or left <= 0:
                    said = "".join(self._lines)
                    raise AssertionError(f"no line matches {pattern!r} within {timeout} s; it said:\n{said}")
                self._changed.wait(left)

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to it, or to its whole process group as Ctrl-C in a terminal does."""
        if group:
            os.killpg(self.pid, number)
        else:
            self._popen.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        """Its exit code, negative for a signal, once all its output was read."""
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; it said:\n{self.output}") from None
        self._reader.join(5)  # a grandchild may hold the pipe for longer
        return code

    def descendants(self) -> list[psutil.Process]:
        """Its children and theirs, whatever process group they have put themselves into."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def kill(self) -> None:
        """End it and what came from it; safe when it has ended."""
        below = self.descendants()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._popen.wait(10)
        self._reader.join(5)

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as stream:
            for line in stream:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._at_end = True
            self._changed.notify_all()


@contextlib.contextmanager
def run_process(
    command: Sequence[str], *, environment: Mapping[str, str | None] | None = None, cwd: Path = ROOT
) -> Iterator[ChildProcess]:
    """Any command, in our environment without the project's own variables, changed by `environment` (None removes)."""
    wanted = {**os.environ, **dict.fromkeys(_PROJECT_VARIABLES), "PYTHONUNBUFFERED": "1", **(environment or {})}
    process = ChildProcess(command, {name: value for name, value in wanted.items() if value is not None}, cwd)
    try:
        yield process
    finally:
        process.kill()


@contextlib.contextmanager
def manage(
    *arguments: str,
    database_url: str,
    jobs: Mapping[str, Any] | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Iterator[ChildProcess]:
    """`manage.py` with these arguments under `tests.settings_process`; `jobs` goes on top of `settings.JOBS`."""
    own = {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "tests.settings_process",
        "TEST_JOBS": json.dumps(jobs or {}),
    }
    command = [sys.executable, "manage.py", *arguments]
    with run_process(command, environment={**own, **(environment or {})}) as process:
        yield process
