"""A schedule as it is declared in code, beside its task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from jobs.domain.errors import InvalidOption, InvalidRule
from jobs.domain.option_checks import checked_text, member, whole_number
from jobs.domain.recurrence import Cron, Every, PlainRule, to_plain
from jobs.domain.recurrence.catch_up import CAP, LARGEST_CAP, CatchUp
from jobs.domain.recurrence.overlap import Overlap
from jobs.domain.text import shown

MAX_NAME = 200
NOT_OF_A_SCHEDULE = {
    **dict.fromkeys(("run_at", "delay", "deadline", "expires_at"), "its rule says when its jobs are due"),
    **dict.fromkeys(("unique_key", "unique_scope"), "its overlap says what happens beside an earlier job"),
}
"""Options that belong to single submissions, and why."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `cron(...)` and `every(...)` give. An interval without an anchor is counted from when it is first seen."""

    rule: PlainRule
    name: str = ""
    """"": the task's own."""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.COALESCE
    catch_up_cap: int = CAP
    options: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """JSON values that differ when the declarations do."""
        instants = {"anchor_at", "start_at", "end_at"}
        rule = {name: getattr(self.rule, name) for name in self.rule.__dataclass_fields__}
        return {
            **{name: value and value.isoformat() if name in instants else value for name, value in rule.items()},
            "name": self.name,
            "args": repr(self.args),
            "kwargs": repr(dict(self.kwargs)),
            "overlap": self.overlap,
            "catch_up": self.catch_up,
            "catch_up_cap": self.catch_up_cap,
            "options": repr(sorted(self.options.items())),
        }


def refuse_submit_options(options: Mapping[str, Any]) -> None:
    """Raises InvalidOption."""
    for name in options:
        if name in NOT_OF_A_SCHEDULE:
            raise InvalidOption(f"{name} cannot be an option of a schedule: {NOT_OF_A_SCHEDULE[name]}")


def declaration(
    rule: PlainRule,
    *,
    name: str = "",
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    overlap: Overlap | str = Overlap.SKIP,
    catch_up: CatchUp | str = CatchUp.COALESCE,
    catch_up_cap: int = CAP,
    **options: Any,
) -> Declaration:
    """Checked, but for the job options and the arguments, which the task knows. Raises InvalidOption."""
    refuse_submit_options(options)
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise InvalidOption(f"args={shown(args)}: give a list or a tuple")
    return Declaration(
        rule=rule,
        name=checked_text(name, "name", MAX_NAME) if name else "",
        args=tuple(args),
        kwargs=dict(kwargs or {}),
        overlap=member("overlap", Overlap, Overlap.SKIP)(overlap),
        catch_up=member("catch_up", CatchUp, CatchUp.COALESCE)(catch_up),
        catch_up_cap=whole_number("catch_up_cap", 1, LARGEST_CAP)(catch_up_cap),
        options=options,
    )


def cron_rule(
    expression: str, zone: str, start: datetime | None, end: datetime | None, jitter: timedelta | float
) -> PlainRule:
    """Raises InvalidRule."""
    return to_plain(Cron(expression, zone, start=start, end=end, jitter=_duration(jitter, "jitter")))


def every_rule(
    interval: timedelta | float,
    anchor: datetime | None,
    start: datetime | None,
    end: datetime | None,
    jitter: timedelta | float,
) -> PlainRule:
    """Raises InvalidRule."""
    stand_in = anchor or start or datetime(2000, 1, 1, tzinfo=timezone.utc)
    plain = to_plain(
        Every(_duration(interval, "interval"), stand_in, start=start, end=end, jitter=_duration(jitter, "jitter"))
    )
    return plain if anchor or start else replace(plain, anchor_at=None)


def named(task: str, schedule: Declaration | Sequence[Declaration] | None) -> tuple[Declaration, ...]:
    """A task's declarations, each with its name: a single one may have the task's own. Raises InvalidOption."""
    if schedule is None:
        return ()
    given = (schedule,) if isinstance(schedule, Declaration) else schedule
    if not isinstance(given, Sequence) or not all(isinstance(one, Declaration) for one in given):
        raise InvalidOption(f"schedule={shown(schedule)}: give cron(...) or every(...), or a list of them")
    if len(given) > 1 and not all(one.name for one in given):
        raise InvalidOption(f"{task}: of several schedules each needs a name=..., by which its row is found again")
    names = [one.name or task for one in given]
    if len(set(names)) < len(names):
        raise InvalidOption(f"{task}: two of its schedules have one name")
    return tuple(replace(one, name=name) for one, name in zip(given, names, strict=True))


def digest(declarations: Iterable[tuple[str, Declaration]]) -> str:
    """Of all that a release declares: task name and declaration."""
    plain = sorted(json.dumps([task, one.plain()], sort_keys=True) for task, one in declarations)
    return hashlib.sha256("\n".join(plain).encode()).hexdigest()


def _duration(value: timedelta | float, part: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRule(f"{part}: {shown(value)}: give seconds or a timedelta", part)
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError) as error:
        raise InvalidRule(f"{part}: {shown(value)} is no duration that a rule may have", part) from error
