"""What a type checker says about code that uses the app: wrong calls are errors, right ones are not."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.ground import ROOT
from tests.support.processes import run_process

PLAIN = """
[mypy]
follow_imports = silent
ignore_missing_imports = True
strict = True
"""
WITH_PLUGIN = """
[mypy.plugins.django-stubs]
django_settings_module = tests.settings_process
"""
# Every line that ends in "E: ..." is an error with that code, and no other line is one.
CODE = """
import jobs
from jobs import AsyncJob, Context, CpuBoundJob, Priority, RetryPolicy, enqueue_many, job
from jobs import enqeue_many  # E: attr-defined
from typing import Any


@job
def bare(order_id: int, *, copy_to: str | None = None) -> dict[str, int]:
    return {"order": order_id}


@job(queue="mail", priority=Priority.HIGH, timeout=30, retry=RetryPolicy(max_retries=5, base_delay=2, max_delay=600))
def with_options(order_id: int, *, copy_to: str | None = None) -> dict[str, int]:
    return {"order": order_id}


@job(takes_context=True)
def with_context(context: Context, path: str) -> int:
    return context.attempt


@job
async def asynchronous(path: str) -> None: ...


class Digest(CpuBoundJob):
    def run_sync(self, path: str, *, size: int = 1) -> str:
        return path


class Fetch(AsyncJob, takes_context=True, queue="mail"):
    async def run(self, context: Context, url: str) -> None: ...


class Loose(CpuBoundJob):
    def run_sync(self, anything: Any, more: int) -> None: ...


bare.enqueue(42, copy_to="me")
bare.enqueue("42")  # E: arg-type
bare.enqueue()  # E: call-arg
bare.enqueue(42, "me")  # E: call-arg
bare.enqueue(42, copy="me")  # E: call-arg
with_options.enqueue(42)
with_options.enqueue("42")  # E: arg-type
with_options.using(delay=60, priority=Priority.LOW, unique_key="receipt-42").enqueue(42)
with_options.using(delay=60).enqueue("42")  # E: arg-type
with_context.enqueue("data.csv")
with_context.enqueue(1)  # E: arg-type
with_context.enqueue(Context, "data.csv")  # E: call-arg, arg-type
asynchronous.enqueue("x")
asynchronous.enqueue(b"x")  # E: arg-type
enqueue_many([bare.bind(n) for n in range(5000)])
enqueue_many([bare.bind("n"), Digest.bind("x")])  # E: arg-type
enqueue_many([bare])  # E: list-item
bare(42)["order"] + 1
bare(42)["order"] + "x"  # E: operator
Digest.enqueue("data.csv", size=2)
Digest.enqueue(3)  # E: arg-type
Digest.using(delay=1).enqueue()  # E: call-arg
Digest.bind("data.csv", count=2)  # E: call-arg
Fetch.enqueue("https://x")
Fetch.enqueue(1)  # E: arg-type
Fetch.using(delay=1).enqueue("https://x", 2)  # E: call-arg
Loose.enqueue("anything", 2)
Loose.using(delay=1).enqueue(["anything"], 2)
job(priority="high")  # E: call-overload
jobs.cancel(bare.enqueue(42).pk, "no", running=False)
jobs.cancel("42")  # E: arg-type
jobs.explain(42).reason.upper()
jobs.requeue(42, delay="soon")  # E: arg-type


async def later() -> None:
    row = await bare.aenqueue(42)
    row.created.bit_length()
    await bare.aenqueue("42")  # E: arg-type
    await Digest.aenqueue(3)  # E: arg-type
    await jobs.acancel(row)
    row.no_such_thing  # E: attr-defined
"""


def errors(said: str) -> set[tuple[int, str]]:
    return {
        (int(line), code) for line, code in re.findall(r"^user\.py:(\d+): error: .*\[([\w-]+)\]$", said, re.MULTILINE)
    }


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "with the Django plugin"])
def test_a_type_checker_flags_wrong_calls_and_only_those(tmp_path: Path, plugin: bool) -> None:
    (tmp_path / "user.py").write_text(CODE)
    config = PLAIN.replace("strict", "plugins = mypy_django_plugin.main\nstrict") + WITH_PLUGIN if plugin else PLAIN
    (tmp_path / "mypy.ini").write_text(config)
    # Kept between runs of the suite on one machine; mypy itself sees what has changed.
    cache = Path(os.environ["JOBS_TEST_DIRECTORY"]) / f"mypy-{plugin}"
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache), "user.py"]
    with run_process(command, environment={"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}, cwd=tmp_path) as child:
        assert child.wait(120) == 1, child.output
        said = child.output
    expected = {
        (number, code)
        for number, line in enumerate(CODE.splitlines(), start=1)
        for code in line.partition("# E: ")[2].split(", ")
        if code
    }
    assert errors(said) == expected, said


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "jobs" / "py.typed").is_file()
