"""`manage.py quickstart`: see the scheduler work, from an empty folder, with one command."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management import BaseCommand, CommandParser

from config.demo.quickstart.show import show


class Command(BaseCommand):
    help = (
        "Prepare a database of its own, make an admin user, submit a sample load, and run the scheduler and the site "
        "until Ctrl-C. Exit codes: 0 done or stopped; 1 something did not work; 2 refused, and the database was not "
        "touched; 130 or 143: --drain was stopped before the load was done."
    )

    # From Django 6.1 on they open the database, before it is known to be our own.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=_port, default=8000, help="Port of the site (8000).")
        parser.add_argument(
            "--drain", action="store_true", help="Run the load without the site, print a summary table, and exit."
        )
        parser.add_argument(
            "--no-load", action="store_false", dest="load", help="Submit nothing: only the scheduler and the site."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        code = show(
            sys.stdout,
            port=options["port"],
            drain=options["drain"],
            load=options["load"],
            quiet_logs=options["verbosity"] < 2,
        )
        if code:
            sys.exit(code)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)
