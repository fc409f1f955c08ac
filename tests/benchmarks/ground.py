"""The database that is measured: a durable throwaway server, or a new database on a server of the caller's."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

from tests.benchmarks import bare
from tests.support.postgres import SETTINGS, PostgresServer
from tests.support.processes import manage

# Honest figures pay for their commits.
DURABLE = {
    **SETTINGS,
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "4GB",
    "shared_preload_libraries": "pg_stat_statements",
}
TABLES = "jobs_job, jobs_attempt, jobs_payload, jobs_result, jobs_failure, jobs_attemptlog, jobs_worker"


@dataclass(slots=True)
class Ground:
    url: str
    directory: Path
    jobs: int
    """Of one drain."""
    rounds: int
    seconds: float
    """How long a snapshot is held, and an idle scheduler watched."""
    _eye: psycopg.Connection[Any] | None = None

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """On one connection: a new one for each look would cost the server more than some of the figures."""
        if self._eye is None or self._eye.closed:
            self._eye = self.connect()
        return self._eye.execute(statement, parameters).fetchall()

    def empty(self) -> None:
        """Nothing in the tables and nothing left to write for what went before."""
        with self.connect() as connection:
            connection.execute(f"TRUNCATE {TABLES}, {bare.TABLES} RESTART IDENTITY")
            self.settle(connection)

    def settle(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(f"VACUUM ANALYZE {TABLES}, {bare.TABLES}")
        with contextlib.suppress(psycopg.Error):  # not everybody may
            connection.execute("CHECKPOINT")

    def server_cpu(self) -> float:
        """CPU seconds of the server's processes so far; 0.0 when it runs elsewhere."""
        postmaster = next((one for one in psutil.process_iter() if _serves(one, self.url)), None)
        if postmaster is None:
            return 0.0
        return sum(cpu_of(one) for one in (postmaster, *postmaster.children(recursive=True)))


def cpu_of(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _serves(process: psutil.Process, url: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name() == "postgres" and str(urlsplit(url).port) in process.cmdline()
    return False


@contextmanager
def laid(database_url: str | None, *, jobs: int, rounds: int, seconds: float) -> Iterator[Ground]:
    """A migrated database of our own, gone afterwards with everything else."""
    directory = Path(tempfile.mkdtemp(prefix="jobs-benchmarks-"))
    directory.chmod(0o711)  # the server's own user passes through
    server = None if database_url else PostgresServer(directory / "postgres", DURABLE)
    name = f"jobs_benchmarks_{secrets.token_hex(4)}"
    admin = ""
    try:
        admin = database_url or (server.start() if server else "")
        _run(admin, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        url = urlunsplit(urlsplit(admin)._replace(path=f"/{name}"))
        migrate(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(bare.DDL)
            with contextlib.suppress(psycopg.Error):
                connection.execute("CREATE EXTENSION pg_stat_statements")
        yield Ground(url, directory, jobs, rounds, seconds)
    finally:
        if admin:
            _run(admin, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def migrate(url: str) -> None:
    with manage("migrate", "--run-syncdb", "--verbosity=0", database_url=url) as process:
        assert process.wait(120) == 0, process.output


def wait_for(done: Callable[[], bool], timeout: float, pause: float = 0.1) -> None:
    give_up_at = time.monotonic() + timeout
    while not done():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not done within {timeout} s")
        time.sleep(pause)


def _run(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
