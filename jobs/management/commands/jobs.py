"""`python manage.py jobs verify`: check the promises on a live database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.conf import jobs_settings
from jobs.store.database import database
from jobs.store.verify import verify


class Command(BaseCommand):
    help = "Look after jobs. `verify` checks the scheduler's promises on the live database and names each violation."
    requires_system_checks = ()  # a broken tasks.py must not keep an operator from looking

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("verify", help="exit code 1 and one line each when a promise is broken")

    def handle(self, *args: Any, **options: Any) -> None:
        settings = jobs_settings()
        found = 0
        # Two sweeps of a scheduler, and time for the statement itself.
        for one in verify(database(settings.DATABASE), overdue_seconds=2 * settings.RENEW + 5):
            found += 1
            self.stdout.write(self.style.ERROR(f"{one}: broken: {one.promise}"))
        if found:
            raise CommandError(f"{found} violation{'s' * (found > 1)}", returncode=1)
        self.stdout.write("Every promise holds.")
