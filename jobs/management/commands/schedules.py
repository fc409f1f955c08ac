"""`python manage.py schedules`: what recurs, what a cron expression means, and which release's declarations hold."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.utils.timezone import get_current_timezone

from jobs import discovery
from jobs.conf import jobs_settings
from jobs.declared import sync_declared
from jobs.domain.errors import InvalidRule
from jobs.domain.recurrence import Cron
from jobs.domain.recurrence.bounds import TICK
from jobs.domain.text import first_line
from jobs.management.console_log import show_log
from jobs.management.option_types import instant, preview_count
from jobs.management.table import table
from jobs.models import Schedule
from jobs.models.clock import database_now
from jobs.schedule_words import by_two_clocks, clock, planned, state_of

HEAD = ("NAME", "RULE", "ZONE", "LAST", "NEXT", "STATE")


class Command(BaseCommand):
    help = "List the recurring schedules; `preview` shows when a cron expression runs, `sync` stores declared ones."
    requires_system_checks = ()  # a broken tasks.py must not keep an operator from looking

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", metavar="{preview,sync}")
        preview = commands.add_parser("preview", help="the next instants of a cron expression, with DST nights marked")
        preview.add_argument("expression", help='five fields or a macro, such as "30 2 * * *"')
        preview.add_argument(
            "--timezone",
            default=django_settings.TIME_ZONE or "UTC",
            help="by the clocks of which place (default: %(default)s)",
        )
        preview.add_argument("--count", type=preview_count, default=5, help="how many (default: %(default)s)")
        preview.add_argument("--after", type=instant, help="from this day or time of that place on, as in 2027-03-13")
        sync = commands.add_parser(
            "sync", help="bring the schedules that are declared in code into line, as runscheduler does at its start"
        )
        sync.add_argument(
            "--force",
            action="store_true",
            help="for a roll-back: without it, a release that was seen before a newer one changes nothing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            match options["command"]:
                case "preview":
                    self._preview(options["expression"], options["timezone"], options["count"], options["after"])
                case "sync":
                    self._sync(force=options["force"])
                case _:
                    self._list()
        except DatabaseError as error:
            alias = jobs_settings().DATABASE
            reason = first_line(str(error)) or type(error).__name__
            raise CommandError(f"database {alias!r} cannot be used: {reason}", returncode=1) from None

    def _list(self) -> None:
        alias = jobs_settings().DATABASE
        now, here = database_now(alias), get_current_timezone()
        rows = [
            (
                row.name,
                row.describe(),
                row.timezone if row.expression else "fixed rate",
                by_two_clocks(row, row.last_occurrence_at, here) or "never",
                by_two_clocks(row, row.next_run_at, here) or "-",
                state_of(row, now).words,
            )
            for row in Schedule.objects.using(alias).order_by("name")
        ]
        if not rows:
            self.stdout.write("There are no schedules.")
            return
        for line in table(HEAD, rows):
            self.stdout.write(line)

    def _preview(self, expression: str, zone: str, count: int, after: datetime | None) -> None:
        try:
            rule = Cron(expression, zone)
        except InvalidRule as error:
            raise CommandError(str(error), returncode=1) from None
        place = ZoneInfo(rule.timezone)
        since = datetime.now(timezone.utc)
        if after is not None:
            since = (after if after.tzinfo else after.replace(tzinfo=place)) - TICK  # so that itself counts
        self.stdout.write(rule.describe())
        if rule.hint():
            self.stdout.write(rule.hint())
        instants = [
            (clock(one.at, place), clock(one.at, timezone.utc) if one.there else "", one.note)
            for one in planned(rule, rule.upcoming(count, since), timezone.utc)
        ]
        for line in table(("", "", ""), instants)[1:]:
            self.stdout.write(line)

    def _sync(self, *, force: bool) -> None:
        show_log()
        if sync_declared(force=force):
            self.stdout.write("The schedules are as this code declares them.")
        elif discovery.failed:
            names = ", ".join(discovery.failed)
            raise CommandError(f"nothing was changed: {names} cannot be imported", returncode=1)
        else:
            raise CommandError(
                "nothing was changed: a newer release declares its schedules otherwise; for a roll-back give --force",
                returncode=1,
            )
