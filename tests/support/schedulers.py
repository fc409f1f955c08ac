"""Real `runscheduler` processes on the database that the test itself uses."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connections
from django.db.models import Count

from jobs.models import Job
from jobs.store.count import orphans
from jobs.store.database import database
from tests.support.processes import ChildProcess, manage

STARTED = r"worker .+ (promotes|runs)"
FAST = {"LEASE": 3, "RENEW": 1, "POLL": 0.5}
"""A lease that tests can wait for."""


def url_of(alias: str) -> str:
    """The `DATABASE_URL` by which another process reaches the test's database."""
    settings = connections[alias].settings_dict
    if connections[alias].vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    user = f"{quote(settings['USER'])}:{quote(settings['PASSWORD'])}"
    return f"postgresql://{user}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


@contextlib.contextmanager
def scheduler(
    alias: str,
    *arguments: str,
    jobs: Mapping[str, Any] | None = None,
    environment: Mapping[str, str | None] | None = None,
    wait: bool = True,
    url: str | None = None,
) -> Iterator[ChildProcess]:
    """A `runscheduler` process with few slots; `wait`: until it says that it has started. `url`: another way to the
    same database."""
    few = ("--threads=4", "--async=10", "--processes=1")
    with manage(
        "runscheduler", *few, *arguments, database_url=url or url_of(alias), jobs=jobs, environment=environment
    ) as process:
        if wait:
            process.wait_for(STARTED)
        yield process


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler of its own for this signal. Linux only."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def no_process(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


def statuses(alias: str) -> dict[str, int]:
    """How many jobs are in each status."""
    return dict(Job.objects.using(alias).values_list("status").annotate(jobs=Count("id")))


def orphaned(alias: str) -> int:
    return orphans(database(alias))
