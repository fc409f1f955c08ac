"""The ground of one test run, laid once: a directory for files, a PostgreSQL server when one can be had."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ground:
    directory: Path
    postgres_url: str
    """Empty when there is no server."""
    reason: str
    """Why there is none."""


def lay_ground() -> Ground:
    """The run's ground; whoever asks first lays it, and hands it down to its children through the environment."""
    if "JOBS_TEST_DIRECTORY" not in os.environ:
        _start_guardian()
    return Ground(
        directory=Path(os.environ["JOBS_TEST_DIRECTORY"]),
        postgres_url=os.environ.get("TEST_DATABASE_URL", ""),
        reason=os.environ.get("JOBS_TEST_NO_POSTGRES", ""),
    )


def _start_guardian() -> None:
    command = [sys.executable, "-m", "tests.support.guardian"]
    if not os.environ.get("TEST_DATABASE_URL"):
        command.append("--server")
    # A session of its own: Ctrl-C must not take the server away before the tests have ended.
    guardian = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert guardian.stdin is not None
    assert guardian.stdout is not None
    line = guardian.stdout.readline()
    if not line:
        raise RuntimeError(f"the guardian of the test run ended with {guardian.wait()}; see its error above")
    ground = json.loads(line)
    os.environ["JOBS_TEST_DIRECTORY"] = ground["directory"]
    if ground["url"]:
        os.environ["TEST_DATABASE_URL"] = ground["url"]
    elif ground["reason"]:
        os.environ["JOBS_TEST_NO_POSTGRES"] = ground["reason"]
    atexit.register(_stop_guardian, guardian, os.getpid())


def _stop_guardian(guardian: subprocess.Popen[str], owner: int) -> None:
    if os.getpid() != owner:  # a fork that ran its exit handlers
        return
    guardian.communicate("stop\n", timeout=30)
