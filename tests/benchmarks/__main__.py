"""Measure, and print each figure beside its floor: `python -m tests.benchmarks NAME|all [--database URL]`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

import django
import psycopg

from tests.benchmarks.figure import Figure, table
from tests.benchmarks.ground import Ground, laid

NAMES = ("drain", "backlog", "snapshot", "long_job", "submit", "latency", "idle", "embedded")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*NAMES, "all"], metavar=f"NAME ({', '.join(NAMES)}) or all")
    parser.add_argument("--database", metavar="URL", help="a PostgreSQL server; default: a throwaway one")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures there")
    parser.add_argument("--jobs", type=int, default=10_000, help="of one drain (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each figure; medians are shown (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=120, help="to hold a snapshot and to watch an idle scheduler (%(default)s)"
    )
    given = parser.parse_args()
    figures: list[Figure] = []
    with laid(given.database, jobs=given.jobs, rounds=given.rounds, seconds=given.seconds) as ground:
        versions = _versions(ground)
        _say(", ".join(f"{name} {value}" for name, value in versions.items()))
        for name in NAMES if "all" in given.names else given.names:
            began = time.monotonic()
            found = importlib.import_module(f"tests.benchmarks.{name}").measure(ground)
            figures += found
            _say(f"\n{name}: {time.monotonic() - began:.0f} s\n{table(found)}")
    if given.json:
        given.json.write_text(json.dumps({"versions": versions, "figures": [one.plain() for one in figures]}, indent=1))
    return 0 if all(one.met for one in figures) else 1


def _versions(ground: Ground) -> dict[str, str]:
    with ground.connect() as connection:
        settings = {
            name: connection.execute(f"SHOW {name}").fetchone()
            for name in ("server_version", "fsync", "synchronous_commit")
        }
    return {
        "Python": platform.python_version(),
        "Django": django.get_version(),
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
        "PostgreSQL": str((settings["server_version"] or ("?",))[0]),
        "fsync": str((settings["fsync"] or ("?",))[0]),
        "synchronous_commit": str((settings["synchronous_commit"] or ("?",))[0]),
        "CPUs": str(os.cpu_count()),
        "load": " ".join(f"{one:.1f}" for one in os.getloadavg()),
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
