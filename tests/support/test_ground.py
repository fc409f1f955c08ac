"""The ground holds: two databases, real commits, child processes, and nothing left when a run is killed."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from django.db import connections, transaction

from tests.support.databases import fresh_database
from tests.support.ground import lay_ground
from tests.support.models import Effect
from tests.support.processes import manage, run_process
from tests.support.waiting import wait_until


def test_the_jobs_database_is_the_one_the_fixture_names(database: str) -> None:
    Effect.objects.using(database).create(label="here")
    vendor = {"default": "sqlite", "postgres": "postgresql"}[database]
    assert connections[database].vendor == vendor
    assert settings.JOBS["DATABASE"] == database
    assert connections[database].in_atomic_block


def test_rows_of_one_test_are_gone_in_the_next(database: str) -> None:
    assert not Effect.objects.using(database).exists()


def test_threads_share_the_rows_of_a_live_database(live_database: str) -> None:
    def write() -> None:
        try:
            with transaction.atomic(using=live_database):
                Effect.objects.using(live_database).create(label="thread")
        finally:
            connections[live_database].close()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Effect.objects.using(live_database).filter(label="thread").count() == 8


def test_a_live_database_is_empty_again(live_database: str) -> None:
    assert not Effect.objects.using(live_database).exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_fresh_database_has_its_tables_in_a_child_process(kind: str) -> None:
    code = "from tests.support.models import Effect; Effect.objects.create(label='x'); print(Effect.objects.count())"
    with fresh_database(kind) as url:
        for expected in ("1", "2"):
            with manage("shell", "--no-imports", "-c", code, database_url=url) as child:
                child.wait_for(rf"^{expected}$")
                assert child.wait() == 0


def test_no_child_outlives_its_block() -> None:
    code = (
        "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); print('ready', flush=True); time.sleep(600)"
    )
    with run_process([sys.executable, "-c", code]) as child:
        child.wait_for("ready")
        below = child.descendants()
        assert below
        child.send(signal.SIGSTOP)
    assert not psutil.pid_exists(child.pid)
    assert not [process for process in below if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_killed_test_run_leaves_no_server_and_no_files() -> None:
    code = "import time; from tests.support.ground import lay_ground; print(lay_ground(), flush=True); time.sleep(600)"
    not_ours = dict.fromkeys(["JOBS_TEST_DIRECTORY", "TEST_DATABASE_URL", "JOBS_TEST_NO_POSTGRES"])
    with run_process([sys.executable, "-c", code], environment=not_ours) as run:
        directory = Path(run.wait_for(r"directory=PosixPath\('(.+?)'\)")[1])
        assert directory != lay_ground().directory
        assert directory.is_dir()
        run.send(signal.SIGKILL)
        wait_until(lambda: not directory.exists(), what=f"{directory} is removed")
    command_lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in command_lines if str(directory) in line]


def test_without_postgresql_its_tests_are_skipped_loudly(tmp_path: Path) -> None:
    environment: dict[str, str | None] = {
        "JOBS_TEST_DIRECTORY": str(tmp_path),
        "JOBS_TEST_NO_POSTGRES": "hidden for a test",
        "TEST_DATABASE_URL": None,
        "REQUIRE_POSTGRES": None,
    }
    names = "tests/support/test_ground.py::test_the_jobs_database_is_the_one_the_fixture_names"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", names]
    with run_process(command, environment=environment) as run:
        assert run.wait(60) == 0, run.output
        assert "POSTGRESQL TESTS WERE SKIPPED" in run.output
        assert "hidden for a test" in run.output
        assert "1 passed, 1 skipped" in run.output
    with run_process(command, environment={**environment, "REQUIRE_POSTGRES": "1"}) as run:
        assert run.wait(60) == pytest.ExitCode.USAGE_ERROR, run.output
