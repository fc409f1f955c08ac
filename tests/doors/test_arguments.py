"""Arguments on their whole way: bound at the call, stored as JSON, given to the body as themselves."""

from __future__ import annotations

import enum
import math
import uuid
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

import jobs
from jobs import InvalidArguments, job
from jobs.declare import Task
from jobs.domain.registry import registry
from jobs.testing import run_jobs


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


received: list[Any] = []


@pytest.fixture
def typed() -> Iterator[Task[..., None]]:
    """A task that notes what arrives, with a parameter of every type that arrives as itself."""

    def body(
        day: date,
        at: datetime,
        clock: time,
        span: timedelta,
        price: Decimal,
        key: uuid.UUID,
        colour: Colour,
        level: Level = Level.LOW,
        *days: date,
        maybe: Decimal | None = None,
        prices: dict[str, Decimal] | None = None,
        pair: tuple[int, date] | None = None,
    ) -> None:
        received.append([day, at, clock, span, price, key, colour, level, days, maybe, prices, pair])

    received.clear()
    yield job(name="tests.typed")(body)
    registry.remove("tests.typed")


VALUES = (
    date(2026, 1, 31),
    datetime(2026, 1, 31, 12, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    time(23, 59, 59, 999_999),
    timedelta(days=-1, microseconds=1),
    Decimal("19.9900"),
    uuid.UUID("12345678-1234-5678-1234-567812345678"),
    Colour.BLUE,
    Level.LOW,
    date(2026, 2, 1),
    date(2026, 2, 2),
)
NAMED = {"maybe": Decimal("1E+3"), "prices": {"a": Decimal("0.1")}, "pair": (1, date(2026, 3, 1))}


def test_annotated_values_arrive_as_themselves(database: str, typed: Task[..., None]) -> None:
    row = typed.enqueue(*VALUES, **NAMED)
    run_jobs()
    assert jobs.get(row).status == "completed"
    expected = [*VALUES[:8], VALUES[8:], NAMED["maybe"], NAMED["prices"], NAMED["pair"]]
    assert received == [expected]
    for arrived, given in zip(received[0], expected, strict=True):
        assert type(arrived) is type(given)
    assert received[0][1].utcoffset() == timedelta(hours=5, minutes=30)
    assert str(received[0][4]) == "19.9900"


def test_what_is_stored_is_plain_json(database: str, typed: Task[..., None]) -> None:
    stored = jobs.get(typed.enqueue(*VALUES, **NAMED)).arguments
    assert stored["args"][:2] == ["2026-01-31", "2026-01-31T12:30:00.000001+05:30"]
    assert stored["args"][4:8] == ["19.9900", "12345678-1234-5678-1234-567812345678", "blue", 1]
    assert stored["kwargs"] == {"maybe": "1E+3", "prices": {"a": "0.1"}, "pair": [1, "2026-03-01"]}


@pytest.fixture
def plain() -> Iterator[Task[..., Any]]:
    def body(*args: Any, **kwargs: Any) -> Any:
        received.append((args, kwargs))
        return [args, kwargs]

    received.clear()
    yield job(name="tests.plain")(body)
    registry.remove("tests.plain")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"rows": [0, 1, 2, {"price": math.nan}]}, r"kwargs\.rows\[3\]\.price is nan"),
        ({"rows": {"a b": [{1, 2}]}}, r"kwargs\.rows\['a b'\]\[0\] is a set"),
        ({"text": "a\0b"}, r"kwargs\.text contains a NUL character"),
        ({"text": ["\udc80"]}, r"kwargs\.text\[0\] contains a lone surrogate"),
        ({"rows": {1: "a"}}, r"kwargs\.rows has a key that is 1; JSON has only text keys"),
        ({"row": {"big": 2**70}}, r"kwargs\.row\.big is an integer of more than 64 bits"),
        ({"row": {"raw": b"x"}}, r"kwargs\.row\.raw is bytes; decode it"),
        ({"day": date(2026, 1, 1)}, r"kwargs\.day is a datetime\.date; annotate the parameter"),
        ({"job": jobs}, r"kwargs\.job is of type module"),
    ],
)
def test_what_cannot_be_stored_is_named_by_its_path(
    database: str, plain: Task[..., Any], given: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidArguments, match=path):
        plain.enqueue(**given)


def test_a_model_instance_is_refused_with_the_advice_to_pass_its_key(database: str, plain: Task[..., Any]) -> None:
    row = plain.enqueue()
    with pytest.raises(InvalidArguments, match=r"args\[0\]\.order is a model instance; give its key \(pk\)"):
        plain.enqueue({"order": row})


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ((1, 2), [1, 2]),
        (-0.0, 0.0),
        (1e16, 1e16),
        (2**63 - 1, 2**63 - 1),
        ({"b": 1, "a": [None, True, "ä\U0001f600 \\u0000"]}, {"b": 1, "a": [None, True, "ä\U0001f600 \\u0000"]}),
        ("", ""),
    ],
)
def test_plain_values_arrive_the_same_on_both_databases(
    database: str, plain: Task[..., Any], given: Any, arrives: Any
) -> None:
    row = plain.enqueue(given, name=given)
    run_jobs()
    assert received == [((arrives,), {"name": arrives})]
    assert type(received[0][0][0]) is type(arrives)
    assert jobs.get(row).result == [[arrives], {"name": arrives}]


def test_arguments_that_no_longer_fit_the_function_fail_the_job_in_words(database: str) -> None:
    def before(a: int, b: int) -> None: ...

    def after(a: int) -> None: ...

    row = job(name="tests.moved")(before).enqueue(1, 2)
    registry.remove("tests.moved")
    job(name="tests.moved")(after)
    try:
        run_jobs()
    finally:
        registry.remove("tests.moved")
    found = jobs.get(row)
    assert found.status == "failed"
    assert "takes 1 positional argument but 2 were given" in found.failure_set.get().message
