"""The command: what it accepts, what it refuses in one line, what it says, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.backends import utils as django_database
from django.db.migrations.recorder import MigrationRecorder

import jobs
from jobs import Execution, Status
from jobs.management.commands.runscheduler import Command
from jobs.models import Attempt, Job, Worker
from jobs.store.database import database
from jobs.store.submit import Submission, submit
from tests.support import tasks
from tests.support.databases import fresh_database
from tests.support.engine import running
from tests.support.ground import ROOT
from tests.support.models import Effect
from tests.support.processes import manage
from tests.support.schedulers import STARTED, orphaned, scheduler, statuses, url_of
from tests.support.waiting import wait_until

# -- what it refuses


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_unapplied_migrations_are_refused_in_one_line(kind: str) -> None:
    with fresh_database(kind, migrated=False) as url, manage("runscheduler", database_url=url) as process:
        assert process.wait() == 2
        (line,) = process.output.strip().splitlines()
        assert "unapplied migrations on database 'default'" in line
        assert "manage.py migrate" in line


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_one_unapplied_migration_is_enough_and_nothing_is_claimed(live_database: str) -> None:
    row = tasks.add.enqueue(1)
    last = MigrationRecorder.Migration.objects.using(live_database).filter(app="jobs").latest("id")
    last.delete()
    try:
        with scheduler(live_database, wait=False) as process:
            assert process.wait() == 2, process.output
            assert last.name in process.output
        assert (jobs.get(row).status, jobs.get(row).attempts) == (Status.PENDING, 0)
    finally:
        MigrationRecorder.Migration.objects.using(live_database).create(app="jobs", name=last.name)


@pytest.mark.parametrize("url", ["postgresql://nobody:x@127.0.0.1:1/nothing", "sqlite:////no/such/folder/db.sqlite3"])
def test_a_database_that_cannot_be_reached_is_said_in_one_line(url: str) -> None:
    with manage("runscheduler", database_url=url) as process:
        assert process.wait() == 2, process.output
        (line,) = process.output.strip().splitlines()
        assert "database 'default' cannot be used" in line


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--threads=-1"], "whole number from 0"),
        (["--threads=many"], "whole number from 0"),
        (["--processes=1.5"], "whole number from 0"),
        (["--concurrency=0"], "whole number from 1"),
        (["--max-jobs=0"], "whole number from 1"),
        (["--grace=soon"], "seconds from 0"),
        (["--grace=-1"], "seconds from 0"),
        (["--grace=nan"], "seconds from 0"),
        (["--queues=:4"], "mail:4,default"),
        (["--queues="], "mail:4,default"),
        (["--queues=mail:"], "whole number from 1"),
        (["--queues=mail:0"], "whole number from 1"),
        (["--role=king"], "invalid choice"),
        (["--speed=9"], "unrecognized arguments"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_with_what_to_give(options: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        Command().create_parser("manage.py", "runscheduler").parse_args(options)


def test_queues_are_read_as_names_with_an_optional_number_of_slots() -> None:
    given = Command().create_parser("manage.py", "runscheduler").parse_args(["--queues", "mail:4, default"])
    assert given.queues == {"mail": 4, "default": None}


def test_a_queue_that_is_not_declared_is_refused_in_one_line(live_database: str) -> None:
    with scheduler(live_database, "--queues=default,nowhere", wait=False) as process:
        assert process.wait() == 2
        (line,) = process.output.strip().splitlines()
        assert "queue 'nowhere' is not declared" in line


@pytest.mark.django_db(transaction=True)
def test_settings_that_make_no_sense_are_refused_in_one_line() -> None:
    with scheduler("default", jobs={"LEASE": 3, "RENEW": 3}, wait=False) as process:
        assert process.wait() == 2
        (line,) = process.output.strip().splitlines()
        assert "JOBS['RENEW'] is 3 s" in line


def test_without_any_slot_it_refuses_to_idle(live_database: str) -> None:
    nothing = ["--threads=0", "--async=0", "--processes=0"]
    with scheduler(live_database, *nothing, wait=False) as process:
        assert process.wait() == 2
        (line,) = process.output.strip().splitlines()
        assert "--threads, --async or --processes" in line
    with scheduler(live_database, *nothing, "--role=scheduler", "--drain") as process:
        assert process.wait() == 0


# -- what it runs, and when it ends


def test_drain_runs_what_is_due_and_what_that_makes_due_then_exits(live_database: str) -> None:
    due = [tasks.add.enqueue(1), tasks.aadd.enqueue(1), tasks.padd.enqueue(1), tasks.fail_twice.enqueue()]
    later = tasks.add.using(delay=3600).enqueue(1)
    with scheduler(live_database, "--drain") as process:
        assert process.wait() == 0, process.output
    assert [jobs.get(row).status for row in due] == [Status.COMPLETED] * 4
    assert jobs.get(later).status == Status.SCHEDULED
    assert not Worker.objects.using(live_database).exists()


def test_drain_exits_at_once_when_nothing_is_due(live_database: str) -> None:
    with scheduler(live_database, "--drain") as process:
        assert process.wait(10) == 0, process.output


def test_drain_leaves_what_it_cannot_run_and_counts_it(live_database: str) -> None:
    ran = tasks.add.enqueue(1)
    left = [tasks.padd.enqueue(1), tasks.padd.enqueue(2)]
    unknown = [
        Submission(f"gone.{name}", "default", Execution.THREAD, 0, '{"args": [], "kwargs": {}}') for name in "ab"
    ]
    left += [jobs.get(receipt.job_id) for receipt in submit(database(live_database), unknown)]
    with scheduler(live_database, "--processes=0", "--drain") as process:
        assert process.wait(20) == 0, process.output
    (line,) = re.findall("WARNING .*drained.*", process.output)
    assert line.endswith(
        "drained, but 4 due jobs left behind: 2 process (no slots here: --processes 1), "
        "1 of task gone.a (not known here: is its app in INSTALLED_APPS?), "
        "1 of task gone.b (not known here: is its app in INSTALLED_APPS?)"
    )
    assert jobs.get(ran).status == Status.COMPLETED
    assert {jobs.get(row).status for row in left} == {Status.PENDING}


def test_only_the_named_queues_are_served_and_one_no_more_than_its_number(live_database: str) -> None:
    mail = [tasks.sleep_in_thread.using(queue="mail").enqueue(0.15) for _ in range(4)]
    other = tasks.add.enqueue(1)
    with scheduler(live_database, "--queues=mail:1", "--drain") as process:
        assert process.wait() == 0, process.output
    assert "queues mail (at most 1)" in process.output
    runs = sorted(Attempt.objects.using(live_database).filter(job__in=mail).values_list("started_at", flat=True))
    assert len(runs) == 4
    # One after the other: the last began when three had slept.
    assert (runs[-1] - runs[0]).total_seconds() > 0.44
    assert jobs.get(other).status == Status.PENDING


def test_it_ends_after_the_wanted_number_of_jobs(live_database: str) -> None:
    jobs.enqueue_many([tasks.leave_mark.bind("some") for _ in range(10)])
    with scheduler(live_database, "--max-jobs=4") as process:
        assert process.wait() == 0, process.output
    assert statuses(live_database) == {"completed": 4, "pending": 6}


def test_it_waits_on_an_empty_queue_until_the_wanted_number_has_ended(live_database: str, tmp_path: Path) -> None:
    with scheduler(live_database, "--max-jobs=2") as process:
        wait_until(lambda: Worker.objects.using(live_database).filter(asleep=True).exists(), what="it sleeps")
        first = tasks.add.enqueue(1)
        wait_until(lambda: jobs.get(first).status == Status.COMPLETED)
        second = tasks.hang_in_thread.enqueue("last", str(tmp_path / "leave"))
        wait_until(lambda: Effect.objects.using(live_database).filter(job_id=second.pk).exists(), what="it runs")
        assert process.running
        (tmp_path / "leave").touch()
        assert process.wait() == 0, process.output
    assert completed([first, second])


def test_inside_another_program_it_gives_the_signals_back(live_database: str) -> None:
    row = tasks.add.enqueue(1)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    call_command("runscheduler", drain=True, threads=1, async_slots=0, processes=0)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert jobs.get(row).status == Status.COMPLETED


def test_the_two_roles_do_their_halves_apart(live_database: str) -> None:
    row = tasks.leave_mark.using(delay=0.2).enqueue("halves")
    with scheduler(live_database, "--role=scheduler", "--name=half") as first:
        first.wait_for("worker half promotes and reclaims jobs of .*; no slots")
        first.wait_for("WARNING .*no live worker runs what becomes due")
        wait_until(lambda: jobs.get(row).status == Status.PENDING, what="it is promoted")
        assert not Effect.objects.using(live_database).exists()
        with scheduler(live_database, "--role=worker", "--name=other") as second:
            second.wait_for("worker other runs jobs of .*; slots: 4 thread")
            wait_until(lambda: jobs.get(row).status == Status.COMPLETED, what="it is run")
            second.send(signal.SIGTERM)
            assert second.wait() == 0
        assert "WARNING" not in second.output
        first.send(signal.SIGTERM)
        assert first.wait() == 0
    with scheduler(live_database, "--role=worker") as alone:
        alone.wait_for("WARNING .*no live scheduler promotes")


# -- what it says


def test_the_first_line_says_what_it_will_do(live_database: str) -> None:
    with scheduler(live_database, "--name=teller", "--queues=mail:4,default", "--grace=7", "--drain") as process:
        said = process.wait_for(STARTED).string
        process.wait()
    for part in (
        "worker teller promotes, runs and reclaims jobs of queues mail (at most 4), default",
        "slots: 4 thread, 10 async, 1 process",
        f"database default ({'PostgreSQL' if live_database == 'postgres' else 'SQLite'})",
        "lease 60 s, poll 5 s, grace 7 s",
    ):
        assert part in said
    assert process.output.strip().splitlines()[-1].endswith("worker teller stopped")


def test_log_lines_carry_the_ids_of_job_and_attempt(live_database: str) -> None:
    tired, broken = tasks.fail_twice.enqueue(), tasks.misbehave.enqueue("non_retryable")
    with scheduler(live_database, "--drain", environment={"LOG_LEVEL": "DEBUG"}) as process:
        assert process.wait() == 0
    for word, row, attempts in (("WARNING", tired, {"1", "2"}), ("ERROR", broken, {"1"}), ("DEBUG", tired, {*"123"})):
        name = re.escape(f"({row.task})")
        found = re.findall(rf"{word} +jobs\S*: job {row.pk}, attempt (\d+) {name} ", process.output)
        assert set(found) == attempts, process.output
    (error,) = re.findall("ERROR .*", process.output)
    assert error.endswith("failed, and is not tried again: jobs.domain.errors.NonRetryableError: no use"), error
    assert not re.search(r"INFO .*ended failed", process.output)
    assert "Traceback" in process.output  # of the final failure


class Terminal:
    """The command with a terminal of its own as its standard error, and what was shown there so far."""

    def __init__(self, alias: str, *arguments: str, columns: int = 100) -> None:
        self._screen, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        own = {**os.environ, "DATABASE_URL": url_of(alias), "DJANGO_SETTINGS_MODULE": "tests.settings_process"}
        # So that Ctrl-C typed there, and its end, reach the command as signals.
        adopt = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        command = [sys.executable, "manage.py", "runscheduler", "--processes=0", *arguments]
        self.process = subprocess.Popen(
            [sys.executable, "-c", adopt, *command],
            cwd=ROOT,
            env=own,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._columns = columns
        self._shown: list[bytes] = []
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait(10)

    @property
    def shown(self) -> str:
        return b"".join(self._shown).decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        """What somebody sees who scrolls up: each line as it ended up, the last one as it is now."""
        seen: list[list[str]] = [[]]
        column = 0
        for part in re.findall("\x1b\\[[0-9;]*[A-Za-z]|.|\n|\r", self.shown):
            if part == "\r":
                column = 0
            elif part == "\n":
                seen.append([])
                column = 0
            elif part == "\x1b[K":
                del seen[-1][column:]
            elif not part.startswith("\x1b"):
                if column == self._columns:
                    seen.append([])
                    column = 0
                seen[-1][column : column + 1] = [part]
                column += 1
        return ["".join(line) for line in seen]

    def type(self, keys: bytes) -> None:
        os.write(self._screen, keys)

    def _read(self) -> None:
        while True:
            try:
                self._shown.append(os.read(self._screen, 4096))
            except OSError:  # the other end is gone, or this one
                return

    def close(self) -> None:
        os.close(self._screen)


def test_a_terminal_shows_one_live_line_with_the_log_above_it(live_database: str, tmp_path: Path) -> None:
    until = tmp_path / "leave"
    rows = [tasks.hang_in_thread.enqueue("live", str(until)), tasks.add.enqueue(1)]
    with Terminal(live_database, columns=400) as terminal:
        wait_until(lambda: terminal.lines[-1].startswith("running 1  completed 1"), what="the line shows both")
        tired = tasks.fail_twice.enqueue()
        wait_until(lambda: "running 1  completed 2  failed 0  retrying 2" in terminal.lines[-1])
        terminal.type(b"\x03")
        wait_until(lambda: re.match(rf"waiting \d+ s for 1 job: #{rows[0].pk} ", terminal.lines[-1]) is not None)
        until.touch()
        assert terminal.process.wait(20) == 0
        wait_until(lambda: terminal.lines[-2].endswith("stopped"))
        lines = [line for line in terminal.lines if line not in ("", "^C")]
    assert completed([*rows, tired])
    # Nothing but whole log lines stays: no line shares its place with the live one.
    assert all(re.match(r"(\^C)?\d{4}-\d\d-\d\d [\d:,]+ (INFO|WARNING) ", line) for line in lines), lines
    assert sum("WARNING" in line for line in lines) == 2
    assert sum("(Ctrl-C" in line for line in lines) == 0


def test_a_narrow_terminal_is_not_scrolled_by_the_live_line(live_database: str) -> None:
    with Terminal(live_database, columns=30) as terminal:
        wait_until(lambda: terminal.lines[-1] == "running 0  completed 0  faile", what="it is cut")
        lines = len(terminal.lines)
        shown = terminal.shown.count("running 0")
        wait_until(lambda: terminal.shown.count("running 0") >= shown + 2, what="it is drawn again")
        assert len(terminal.lines) == lines


def test_a_closed_terminal_stops_it_like_a_signal(live_database: str) -> None:
    row = tasks.hang_in_thread.enqueue("left")
    with Terminal(live_database, "--grace=0.2") as terminal:
        wait_until(lambda: Effect.objects.using(live_database).filter(job_id=row.pk).exists(), what="it runs")
        terminal.close()
        assert terminal.process.wait(20) == 0
    assert (jobs.get(row).status, jobs.get(row).interruptions) == (Status.PENDING, 1)
    assert not Worker.objects.using(live_database).exists()


def test_under_nohup_a_hangup_is_nothing(live_database: str) -> None:
    row = tasks.hang_in_thread.enqueue("stays")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with scheduler(live_database) as process:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            wait_until(lambda: Effect.objects.using(live_database).filter(job_id=row.pk).exists(), what="it runs")
            process.send(signal.SIGHUP)
            assert completed_after(tasks.add.enqueue(1))
            assert process.running
            process.send(signal.SIGTERM)
            process.wait_for(f"stopping: no new jobs; up to 2[45] s for 1 job: #{row.pk}; a second signal")
            process.send(signal.SIGTERM)
            assert process.wait() == 0
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_without_a_terminal_there_is_no_live_line(live_database: str) -> None:
    tasks.add.enqueue(1)
    with scheduler(live_database, "--drain") as process:
        process.wait()
    assert "\r" not in process.output
    assert "Ctrl-C" not in process.output


# -- development


@pytest.mark.parametrize("live_database", ["sqlite"], indirect=True)
def test_reload_starts_restarts_on_a_change_and_hands_jobs_back(live_database: str, tmp_path: Path) -> None:
    code = tmp_path / "settings_that_change.py"
    code.write_text("from tests.settings_process import *\n")
    environment = {"DJANGO_SETTINGS_MODULE": code.stem, "PYTHONPATH": str(tmp_path)}
    row = tasks.hang_in_thread.enqueue("reloaded")
    effects = Effect.objects.using(live_database).filter(job_id=row.pk)
    with scheduler(live_database, "--reload", "--processes=0", environment=environment) as process:
        wait_until(lambda: effects.count() == 1, what="the job runs")
        wait_until(lambda: _touch(code) and "reloading" in process.output, what="the change is seen")
        wait_until(lambda: jobs.get(row).status == Status.COMPLETED, what="it was handed back, and run again")
        process.send(signal.SIGINT, group=True)
        assert process.wait() == 0, process.output
    assert "Traceback" not in process.output
    assert (jobs.get(row).attempts, jobs.get(row).interruptions, jobs.get(row).losses) == (2, 1, 0)
    assert orphaned(live_database) == 0


def _touch(file: Path) -> bool:
    """Its date moves on, by more than a reloader could overlook; what changed before its first look does not count."""
    later = file.stat().st_mtime + 2
    os.utime(file, (later, later))
    return True


# -- what it costs


@pytest.mark.parametrize("live_database", ["postgres"], indirect=True)
def test_an_idle_scheduler_sends_less_than_a_statement_a_second(
    live_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = 5.5
    sent: list[str] = []
    execute = django_database.CursorWrapper.execute

    def note(self: Any, sql: Any, params: Any = None) -> Any:
        sent.append(" ".join(str(sql).split())[:80])
        return execute(self, sql, params)

    with running(poll=5.0):
        wait_until(
            lambda: Worker.objects.using(live_database).filter(asleep=True).exists(),
            what="it sleeps",
        )
        monkeypatch.setattr(django_database.CursorWrapper, "execute", note)
        threading.Event().wait(seconds)  # what is measured is what happens while nothing does
        monkeypatch.undo()
    with capsys.disabled():
        print(f"\nidle scheduler: {len(sent)} statements in {seconds:g} s {sent}")  # noqa: T201
    assert 0 < len(sent) <= seconds


def completed(rows: list[Job]) -> bool:
    return all(jobs.get(row).status == Status.COMPLETED for row in rows)


def completed_after(row: Job) -> bool:
    wait_until(lambda: jobs.get(row).status == Status.COMPLETED)
    return True
