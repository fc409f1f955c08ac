"""The sample tasks do what they say, called as the plain functions that they are."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from config.demo import http, library, readings, tasks
from config.demo.models import Order, Reading, Station
from config.demo.quickstart.servers import file_server
from jobs.domain.context import Context, Progress
from jobs.domain.errors import JobCancelled
from jobs.domain.stop import StopReason, StopSignal


class Running:
    """A context to call tasks with, and what they reported through it."""

    def __init__(self, attempt: int = 1) -> None:
        self.stop = StopSignal()
        self.progress: list[Progress] = []
        self.context = Context(job_id=1, attempt=attempt, fence=1, stop=self.stop, report=self.progress.append)


def test_a_folder_of_the_library_is_digested_and_counted() -> None:
    files = library.files("json")
    assert len(files) >= 4
    tally = tasks.count_library.definition.function(Running().context, "json")
    sources = [file.read_bytes() for file in files]
    assert tally["files"] == len(files)
    assert tally["lines"] == sum(len(source.splitlines()) for source in sources)
    assert 0 < tally["blank_lines"] < tally["lines"]
    assert tally["definitions"] > 20
    digests = b"".join(hashlib.sha256(source).digest() for source in sources)
    assert tally["sha256"] == hashlib.sha256(digests).hexdigest()


def test_every_folder_of_the_library_has_files_and_none_is_installed_by_pip() -> None:
    folders = library.folders()
    assert folders[0] == "."
    assert {"asyncio", "json"} <= set(folders)
    assert "site-packages" not in folders
    assert all(library.files(folder) for folder in folders)


def test_a_file_that_is_no_python_is_counted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_bytes(b"def (:\n\xff\n\n# end\n")
    tally = library.Tally()
    tally.add(tmp_path / "broken.py")
    tally.add(tmp_path / "gone.py")
    assert (tally.files, tally.lines, tally.blank_lines, tally.comment_lines, tally.definitions) == (1, 4, 1, 1, 0)
    assert tally.unreadable == 1


@pytest.mark.django_db
def test_a_csv_file_is_imported_once_however_often_it_runs() -> None:
    run = tasks.import_readings.definition.function
    running = Running()
    assert run(running.context, "vienna.csv") == {"rows": 744}
    assert run(Running().context, "vienna.csv") == {"rows": 744}
    assert Station.objects.get().code == "vienna"
    assert Reading.objects.count() == 744
    assert running.progress[-1].done == 744
    first = Reading.objects.earliest("measured_at")
    assert (first.measured_at.isoformat(), first.humidity) == ("2026-01-01T00:00:00+00:00", 80)


@pytest.mark.django_db
def test_an_import_that_is_cancelled_stops_before_its_next_batch() -> None:
    running = Running()
    running.stop.fire(StopReason.CANCEL)
    with pytest.raises(JobCancelled):
        tasks.import_readings.definition.function(running.context, "vienna.csv")
    assert not Reading.objects.exists()


def test_a_bad_row_is_named_by_its_line() -> None:
    lines = ["measured_at,temperature,humidity", "2026-01-01T00:00:00+00:00,1.5,80", "soon,1,2"]
    with pytest.raises(ValueError, match="line 3 is not a reading"):
        list(readings.batches(lines))


def test_an_address_is_fetched_and_a_bad_answer_fails() -> None:
    server = file_server(tasks.DATA)
    server.start()
    try:
        check = tasks.check_url.definition.function
        fetched = asyncio.run(check(f"{server.url}/vienna.csv"))
        assert fetched["status"] == 200
        assert fetched["bytes"] == (tasks.DATA / "vienna.csv").stat().st_size
        with pytest.raises(http.BadAnswer, match="404"):
            asyncio.run(check(f"{server.url}/atlantis.csv"))
    finally:
        server.stop()
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(check(f"{server.url}/vienna.csv"))
    with pytest.raises(ValueError, match="only http://"):
        asyncio.run(check("https://example.com/"))


def test_the_flaky_task_succeeds_at_its_third_attempt() -> None:
    run = tasks.fails_twice_then_succeeds.definition.function
    for attempt in (1, 2):
        with pytest.raises(ConnectionError):
            run(Running(attempt).context)
    assert run(Running(3).context) == "answered at attempt 3"
    with pytest.raises(ValueError, match="always fails"):
        tasks.always_fails()


def test_the_slow_task_shows_its_progress() -> None:
    running = Running()
    tasks.slow_with_progress.definition.function(running.context, 0.01)
    assert [progress.done for progress in running.progress] == list(range(1, 51))
    assert {progress.total for progress in running.progress} == {50}


@pytest.mark.django_db
def test_an_order_gets_one_receipt_and_is_packed_once() -> None:
    order = Order.objects.create(customer="ada@example.com", item="Engine", quantity=2)
    assert "To ada@example.com: 2 x Engine" in tasks.send_receipt(order.pk)
    assert [tasks.pack_order(order.pk), tasks.pack_order(order.pk)] == [True, False]
    order.refresh_from_db()
    assert order.packed_at is not None
    assert order.receipt.endswith("Thank you!")
