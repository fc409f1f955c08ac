"""Short words for tests of schedules in the admin: addresses, and what browsers post."""

from __future__ import annotations

from typing import Any

from django.contrib.messages import get_messages
from django.test import Client

from jobs.models import Schedule

LIST = "/admin/jobs/schedule/"
ADD = f"{LIST}add/"


def page_of(row: Schedule) -> str:
    return f"{LIST}{row.pk}/change/"


def verb(row: Schedule, name: str) -> str:
    return f"{LIST}{row.pk}/{name}/"


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def stored(database: str, name: str = "nightly") -> Schedule:
    found: Schedule = Schedule.objects.using(database).get(name=name)
    return found


def given(**fields: Any) -> dict[str, Any]:
    """What a browser posts for a new schedule."""
    return {
        "name": "nightly",
        "task": "tests.send_receipt",
        "factory": "",
        "args": "[42]",
        "kwargs": "{}",
        "options": "{}",
        "expression": "0 7 * * mon-fri",
        "timezone": "Europe/Berlin",
        "interval_seconds": "",
        "anchor_at_0": "",
        "anchor_at_1": "",
        "start_at_0": "",
        "start_at_1": "",
        "end_at_0": "",
        "end_at_1": "",
        "jitter_seconds": "0",
        "overlap": "skip",
        "catch_up": "coalesce",
        "catch_up_cap": "10",
        **fields,
    }


def as_shown(client: Client, row: Schedule) -> dict[str, Any]:
    """What a browser would post if nobody touched the form of that page."""
    form = client.get(page_of(row)).context["adminform"].form
    posted: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        if bound.name in ("anchor_at", "start_at", "end_at"):
            parts = bound.field.widget.decompress(value)
            posted |= {f"{bound.name}_{n}": "" if part is None else str(part) for n, part in enumerate(parts)}
        else:
            posted[bound.name] = "" if value is None else value
    return posted
