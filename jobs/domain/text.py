"""Text that both databases can hold: without NUL and lone surrogates, and cut to a stated length."""

from __future__ import annotations

import bisect
import re
from datetime import datetime, timezone

_CUT = re.compile(r"\n\.\.\. [0-9]+ characters left out \.\.\.\n")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# Read past whatever a metaclass puts in the way.
_module_of = type.__dict__["__module__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__


def class_path(cls: type) -> str:
    """The dotted path of a class, `builtins.ValueError` too; at most 200 bytes, never raises."""
    try:
        module = _module_of(cls)
        qualname = str.__str__(_qualname_of(cls))
        return clean_text(f"{str.__str__(module)}.{qualname}" if isinstance(module, str) else qualname, 200)
    except BaseException:  # noqa: BLE001 - out of memory or of stack, while a failure is being recorded
        return "<unnamed class>"


def clean_text(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8 that both databases can hold.

    NUL and lone surrogates become their escapes, six characters each. A longer text keeps its head and its
    tail, and says between them how many characters are missing.
    """
    if len(text) <= limit:
        whole = _escaped(text)
        if len(whole.encode()) <= limit:
            return whole
    budget = (limit - len(_cut(len(text)))) // 2
    if budget <= 0:
        return _escaped(text[: _fitting(text, limit, from_end=False)])
    head = _fitting(text, budget, from_end=False)
    tail = _fitting(text, budget, from_end=True)
    return _escaped(text[:head]) + _cut(len(text) - head - tail) + _escaped(text[len(text) - tail :])


def is_cut(text: str) -> bool:
    """Whether `clean_text` left something out of it."""
    return _CUT.search(text) is not None


def _cut(characters: int) -> str:
    return f"\n... {characters} characters left out ...\n"


def _escaped(text: str) -> str:
    return _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _fitting(text: str, limit: int, *, from_end: bool) -> int:
    """How many characters of one end fit into `limit` bytes once escaped."""
    part = text[-limit:] if from_end else text[:limit]

    def size(count: int) -> int:
        return len(_escaped(part[len(part) - count :] if from_end else part[:count]).encode())

    return bisect.bisect_right(range(len(part) + 1), limit, key=size) - 1


def first_line(text: str, limit: int = 300) -> str:
    """The first line that says anything, with a mark where it was cut; for log lines and sentences."""
    line = next((line for line in map(str.strip, text.splitlines()) if line), "")
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def instant_text(at: datetime | None) -> str:
    """To the second, in UTC: whoever reads it at night must not have to guess the zone."""
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC" if at else "an unknown time"


def short_class(path: str) -> str:
    """A stored class as people know it: nobody writes `builtins.ValueError`."""
    return path.removeprefix("builtins.")


def shown(value: object) -> str:
    """A value inside an error message: short ASCII, never raises."""
    try:
        text = ascii(value)
    except Exception:  # noqa: BLE001 - a __repr__ may raise anything, and integers of 5,000 digits have none
        return f"<{short_class(class_path(type(value)))}>"
    return text if len(text) <= 80 else f"{text[:77]}..."
