"""The quickstart as a newcomer meets it: a process of its own, in an empty folder, on the project's own settings."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import socket
import sqlite3
import sys
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from django.core.management import CommandError

from config.demo.management.commands.quickstart import Command
from config.demo.quickstart.servers import _Files
from tests.support.databases import fresh_database
from tests.support.processes import ChildProcess, run_process

REFUSED = 2


@contextlib.contextmanager
def quickstart(folder: Path, *arguments: str, url: str = "") -> Iterator[ChildProcess]:
    environment: dict[str, str | None] = {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": url or f"sqlite:///{folder}/db.sqlite3",
        "ENV_FILE": str(folder / ".env"),
    }
    command = [sys.executable, "manage.py", "quickstart", *arguments]
    with run_process(command, environment=environment) as child:
        yield child


def run(folder: Path, *arguments: str, url: str = "", expect: int = 0, timeout: float = 60) -> str:
    with quickstart(folder, *arguments, url=url) as child:
        assert child.wait(timeout) == expect, child.output
        return child.output


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / "db.sqlite3")) as connection:
        return connection.execute(query).fetchall()


def nothing_runs(folder: Path) -> bool:
    """What was interrupted is handed back, and waits for the next start."""
    running = [
        rows(folder, f"SELECT 1 FROM {table} WHERE {column} = 'running'")
        for table, column in (("jobs_job", "status"), ("jobs_attempt", "outcome"))
    ]
    return running == [[], []]


def fetch(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.status, answer.read().decode()


def test_a_drain_does_the_whole_load_and_a_second_run_keeps_what_the_first_made(tmp_path: Path) -> None:
    said = run(tmp_path, "--drain", timeout=120)
    assert len(re.findall(r"^Admin user: admin   password: \w{16} ", said, re.MULTILINE)) == 1
    assert "Traceback" not in said
    table = {line.split()[0]: line.split()[1:5] for line in said.splitlines() if re.search(r" s  +\S+ s$", line)}
    assert table.keys() == {
        "always_fails",
        "check_url",
        "count_library",
        "fails_twice_then_succeeds",
        "import_readings",
        "send_receipt",
        "slow_with_progress",
    }
    # jobs, attempts, completed, failed
    assert table["always_fails"] == ["1", "2", "0", "1"]
    assert table["fails_twice_then_succeeds"] == ["1", "3", "1", "0"]
    for task in table.keys() - {"always_fails", "fails_twice_then_succeeds"}:
        jobs, _, completed, failed = table[task]
        assert (completed, failed) == (jobs, "0"), said
    assert rows(tmp_path, "SELECT count(*) FROM demo_reading") == [(6 * 744,)]

    key = (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    users = rows(tmp_path, "SELECT username, is_superuser, password FROM auth_user")
    assert [(name, boss) for name, boss, _ in users] == [("admin", 1)]
    jobs_before = rows(tmp_path, "SELECT count(*) FROM jobs_job")

    said = run(tmp_path, "--drain", "--no-load")
    assert "python manage.py changepassword admin" in said
    assert "password:" not in said
    assert rows(tmp_path, "SELECT username, is_superuser, password FROM auth_user") == users
    assert rows(tmp_path, "SELECT count(*) FROM jobs_job") == jobs_before
    assert (tmp_path / ".env").read_text() == key


def test_the_site_answers_beside_the_scheduler_and_ctrl_c_stops_both(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--port", "0") as child:
        url = child.wait_for(r"^Admin: (http://127\.0\.0\.1:\d+)/admin/")[1]
        assert fetch(f"{url}/demo/ping/") == (200, "pong\n")
        status, page = fetch(f"{url}/admin/")
        assert (status, "Log in" in page) == (200, True)
        assert fetch(f"{url}/static/admin/css/base.css")[0] == 200
        child.wait_for(r"^\d+ of \d+ jobs done")
        child.send(signal.SIGINT, group=True)
        assert child.wait(30) == 0, child.output
        assert re.search(r"^Stopped\. ", child.output, re.MULTILINE), child.output
        assert "Traceback" not in child.output
    assert nothing_runs(tmp_path)


def test_an_idle_site_stops_at_once_on_sigterm(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--port", "0", "--no-load") as child:
        child.wait_for("^0 of 0 jobs done")
        child.send(signal.SIGTERM)
        assert child.wait(5) == 0, child.output
        assert "Stopped. No job is left waiting." in child.output


def test_a_drain_that_is_stopped_does_not_look_done(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--drain") as child:
        child.wait_for(r"^\d+ of \d+ jobs done")
        child.send(signal.SIGTERM)
        child.wait_for("^Stopping")
        child.send(signal.SIGTERM)
        assert child.wait(30) == 128 + signal.SIGTERM, child.output
        assert "jobs wait for the next start" in child.output
        assert "Traceback" not in child.output
    assert nothing_runs(tmp_path)


@pytest.mark.parametrize("port", ["80x", "-1", "65536", "1_0"])
def test_a_port_that_is_none_says_what_to_give(port: str) -> None:
    with pytest.raises(CommandError, match=f"'{port}' is no port: give a number from 0 to 65535"):
        Command().create_parser("manage.py", "quickstart").parse_args([f"--port={port}"])


def test_jobs_of_an_earlier_run_are_told_apart_from_the_load(tmp_path: Path) -> None:
    with quickstart(tmp_path, "--port", "0", "--no-load") as child:
        child.wait_for("^0 of 0 jobs done")
        code = "from config.demo.tasks import slow_with_progress as slow; slow.using(delay=3600).enqueue(1)"
        url = f"sqlite:///{tmp_path}/db.sqlite3"
        own: dict[str, str | None] = {"DATABASE_URL": url, "ENV_FILE": str(tmp_path / ".env")}
        own["DJANGO_SETTINGS_MODULE"] = "config.settings"
        with run_process([sys.executable, "manage.py", "shell", "-c", code], environment=own) as shell:
            assert shell.wait() == 0, shell.output
        child.send(signal.SIGHUP)  # as when the terminal is closed
        assert child.wait(15) == 0, child.output
        assert "Stopped. 1 job waits for the next start." in child.output
    said = run(tmp_path, "--drain", "--no-load")
    assert "From before: 1 job not done yet" in said
    assert "1 older job is not done yet. To go on with them: python manage.py quickstart --no-load" in said
    assert "0 of 0" not in said


@pytest.mark.parametrize(("error", "level"), [(ConnectionResetError(), "DEBUG"), (KeyError("x"), "ERROR")])
def test_a_client_that_left_is_no_news(error: Exception, level: str, caplog: pytest.LogCaptureFixture) -> None:
    server = _Files(("127.0.0.1", 0), BaseHTTPRequestHandler)
    try:
        with caplog.at_level(logging.DEBUG):
            try:
                raise error
            except type(error):
                server.handle_error(None, ("127.0.0.1", 7))
    finally:
        server.server_close()
    assert [record.levelname for record in caplog.records] == [level]


def test_a_taken_port_gets_one_line_and_changes_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = run(tmp_path, "--port", str(port), expect=REFUSED)
    assert len(said.splitlines()) == 1
    assert f"port {port} is taken" in said
    assert "python manage.py quickstart --port" in said
    assert not (tmp_path / "db.sqlite3").exists()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_foreign_database_is_refused_and_not_even_switched_to_wal(tmp_path: Path, mode: str) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "db.sqlite3")) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE invoices (number integer)")
    before = (tmp_path / "db.sqlite3").read_bytes()
    said = run(tmp_path, "--drain", expect=REFUSED)
    assert len(said.splitlines()) == 1
    assert "quickstart did not make the SQLite database" in said
    assert "which has 1 table (invoices)" in said
    assert (tmp_path / "db.sqlite3").read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db.sqlite3").write_text("Dear diary, " * 1000)
    said = run(tmp_path, "--drain", expect=REFUSED)
    assert len(said.splitlines()) == 1
    assert "cannot be used: file is not a database" in said


def test_on_postgresql_an_empty_database_is_taken_and_another_is_refused(tmp_path: Path) -> None:
    with fresh_database("postgres", migrated=False) as url:
        assert "password: " in run(tmp_path, "--drain", "--no-load", url=url)
        assert "changepassword" in run(tmp_path, "--drain", "--no-load", url=url)
    with fresh_database("postgres") as url:
        said = run(tmp_path, "--drain", url=url, expect=REFUSED)
    assert len(said.splitlines()) == 1
    assert "quickstart did not make the PostgreSQL database" in said


def test_a_server_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    said = run(tmp_path, "--drain", url="postgresql://me:hidden@127.0.0.1:1/nowhere", expect=REFUSED)
    assert len(said.splitlines()) == 1
    assert "the PostgreSQL database nowhere at 127.0.0.1:1 cannot be used" in said
    assert "hidden" not in said
    assert "refused. Start the server, or use SQLite: DATABASE_URL=sqlite:///" in said
