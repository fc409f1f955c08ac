"""The text of one field: read strictly, item by item, and written back in numbers."""

from __future__ import annotations

import re

from jobs.domain.recurrence.fields import DAY_OF_MONTH, DAY_OF_WEEK, SUNDAY_TOO, Field, Item, Kind


def read_field(kind: Kind, text: str) -> Field:
    """The field, or `InvalidRule` that names it."""
    parts = text.split(",")
    if "" in parts:
        raise kind.error("empty list item")
    items = tuple(_read_item(kind, part) for part in parts)
    for part in parts:
        if part in ("*", "?") and len(parts) > 1:
            raise kind.error(f'"{part}" cannot be combined with other values')
        if kind is DAY_OF_MONTH and part.endswith("w") and len(parts) > 1:
            raise kind.error("W cannot be used in a list")
    return Field(kind, items)


def _read_item(kind: Kind, text: str) -> Item:
    if text == "*":
        return Item("*", _span(kind), has_star=True)
    if text == "?":
        if not kind.is_day:
            raise kind.error('"?" is only allowed in the day fields')
        return Item("*", _span(kind), has_star=True)
    special = _read_special(kind, text)
    if special is not None:
        return special
    base, slash, step = text.partition("/")
    if slash:
        return _stepped(kind, base, _read_step(kind, step))
    if "-" in base:
        return _range(kind, base)
    value = _read_number(kind, base)
    return Item(str(value), _days(kind, (value,)))


def _read_special(kind: Kind, text: str) -> Item | None:
    if re.match(r"[hr](?![a-z])", text):
        raise kind.error("H and R (hashed/random) values are not supported; use jitter")
    if kind is DAY_OF_MONTH:
        if text == "l":
            return Item("l", special="l")
        nearest = re.fullmatch(r"([0-9]{1,2})w", text)
        if nearest:
            day = _read_number(kind, nearest[1])
            return Item(f"{day}w", special=f"{day}w")
        if re.search(r"[lw]", text):
            raise kind.error(f'{text!r}: only "L" and "<day>W" are supported')
    if kind is DAY_OF_WEEK:
        last = re.fullmatch(r"l([0-7])", text)
        if last:
            day = int(last[1]) % 7
            return Item(f"l{day}", special=f"l{day}")
        if text == "l" or re.fullmatch(r"l[0-9a-z]+|[0-9]+l", text):
            raise kind.error("write L<0-7> for the last weekday of the month, e.g. L5")
        if "#" in text:
            return _read_nth(kind, text)
    return None


def _read_nth(kind: Kind, text: str) -> Item:
    day_text, _, nth = text.partition("#")
    day = _read_number(kind, day_text) % 7
    if not re.fullmatch(r"[0-9]{1,2}", nth) or not 1 <= int(nth) <= 5:
        raise kind.error(f"occurrence #{nth} is outside 1-5")
    return Item(f"{day}#{int(nth)}", special=f"{day}#{int(nth)}")


def _read_step(kind: Kind, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,2}", text):
        raise kind.error(f"step {text!r} is not a number of one or two digits")
    if int(text) < 1:
        raise kind.error("step must be at least 1")
    return int(text)


def _stepped(kind: Kind, base: str, step: int) -> Item:
    if base == "*":
        first, last, written = kind.lowest, kind.highest, "*"
    elif "-" in base:
        first, last = _ends(kind, base)
        if first > last:
            raise kind.error(f"range {base} runs backwards, which cannot have a step")
        written = f"{first}-{last}"
    else:
        first = _read_number(kind, base)
        last = max(first, kind.highest)
        written = f"{first}-{last}"
    values = _days(kind, range(first, last + 1, step))
    if len(values) < 2:
        raise kind.error(f"step {step} never reaches a second value in {first}-{last}")
    return Item(f"{written}/{step}", values, has_star=base == "*")


def _range(kind: Kind, text: str) -> Item:
    first, last = _ends(kind, text)
    if first < last:
        return Item(f"{first}-{last}", _days(kind, range(first, last + 1)))
    if not kind.wraps:
        raise kind.error(f"range {text} runs backwards")
    # Spelled out, since nobody agrees on how a range that wraps is to be read.
    around = [*range(first, kind.highest + 1), *range(kind.lowest, last + 1)]
    values = _days(kind, [first, *around])
    return Item(",".join(map(str, values)), values)


def _ends(kind: Kind, text: str) -> tuple[int, int]:
    ends = text.split("-")
    if len(ends) != 2 or "" in ends:
        raise kind.error(f"{text!r} is not a valid range")
    first, last = (_read_number(kind, end) for end in ends)
    if first == last or (kind is DAY_OF_WEEK and (first, last) == (SUNDAY_TOO, 0)):
        raise kind.error(f"range {text} has equal ends; write {ends[0]}")
    return first, last


def _read_number(kind: Kind, text: str) -> int:
    if text in kind.names:
        return kind.names.index(text) + kind.lowest
    if text.startswith("-") or text.endswith("-"):
        raise kind.error(f"{text!r} is not a valid range")
    if not re.fullmatch(r"[0-9]+", text):
        raise kind.error(f"{text!r} is not a number{' or name' if kind.names else ''}")
    if len(text) > 2 or not kind.lowest <= int(text) <= kind.accepted:
        raise kind.error(f"{text} is outside {kind.lowest}-{kind.accepted}")
    return int(text)


def _span(kind: Kind) -> tuple[int, ...]:
    return tuple(range(kind.lowest, kind.highest + 1))


def _days(kind: Kind, values: range | list[int] | tuple[int, ...]) -> tuple[int, ...]:
    """Ascending and without repeats; 7 and 0 are one day."""
    return tuple(sorted({value % 7 for value in values} if kind is DAY_OF_WEEK else set(values)))
