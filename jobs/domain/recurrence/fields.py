"""The five fields of a cron expression, and what each may hold.

Ranges are POSIX crontab's: minute 0-59, hour 0-23, day of month 1-31, month 1-12, day of week 0-6 from Sunday; 7 is
Sunday too, as in Vixie cron. Names and steps are Vixie's. `L`, `nW`, `d#k` and `Ld` are croniter's.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.domain.errors import InvalidRule

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SUNDAY_TOO = 7


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a field stands and what it may hold."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    is_day: bool = False
    wraps: bool = False

    @property
    def accepted(self) -> int:
        """The highest number that may be written."""
        return SUNDAY_TOO if self is DAY_OF_WEEK else self.highest

    def error(self, complaint: str) -> InvalidRule:
        return InvalidRule(f"{self.name}: {complaint}")


MINUTE = Kind("minute", 0, 59)
HOUR = Kind("hour", 0, 23)
DAY_OF_MONTH = Kind("day-of-month", 1, 31, is_day=True)
MONTH = Kind("month", 1, 12, names=MONTHS, wraps=True)
DAY_OF_WEEK = Kind("day-of-week", 0, 6, names=WEEKDAYS, is_day=True, wraps=True)
KINDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


@dataclass(frozen=True, slots=True)
class Item:
    """One member of a field's list, in numbers; `values` is empty for `L`, `nW`, `d#k` and `Ld`."""

    text: str
    values: tuple[int, ...] = ()
    special: str = ""
    has_star: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    kind: Kind
    items: tuple[Item, ...]

    @property
    def text(self) -> str:
        return ",".join(item.text for item in self.items)

    @property
    def is_free(self) -> bool:
        """A lone `*`: the field asks for nothing. `1-31` does ask, and makes two day fields an OR."""
        return self.text == "*"

    @property
    def has_star(self) -> bool:
        return any(item.has_star for item in self.items)

    @property
    def specials(self) -> tuple[str, ...]:
        return tuple(item.special for item in self.items if item.special)

    @property
    def values(self) -> tuple[int, ...]:
        """The plain numbers that match, ascending; Sunday is 0."""
        return tuple(sorted({value for item in self.items for value in item.values}))
