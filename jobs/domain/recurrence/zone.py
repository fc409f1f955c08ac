"""The zones a rule may name: those of the tz database, by their exact names."""

from __future__ import annotations

import difflib
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from jobs.domain.errors import InvalidRule
from jobs.domain.text import shown

NO_PLACES = ("Factory", "localtime", "posixrules")
"""Files beside the zones that mean something else on every host."""


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    # Asking ZoneInfo itself is not enough: it loads `right/UTC`, which counts leap seconds.
    return frozenset(available_timezones().difference(NO_PLACES))


def zone_of(name: object) -> ZoneInfo:
    """The zone, or `InvalidRule` that proposes a name."""
    if not isinstance(name, str) or name not in zone_names():
        raise InvalidRule(f"timezone: {shown(name)} is no zone of the tz database{_proposal(name)}", "timezone")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRule(f"timezone: the tz data of {name} cannot be read on this host", "timezone") from error


def _proposal(name: object) -> str:
    if not isinstance(name, str):
        return "; give its name, such as Europe/Berlin"
    by_lower = {known.lower(): known for known in zone_names()}
    close = difflib.get_close_matches(name.lower()[:64], by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else "; names look like Europe/Berlin or UTC"
