"""`full_clean` of a schedule: every mistake at its field."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs import Task
from jobs.domain.factories import Factory, factories
from jobs.domain.registry import registry
from jobs.models import Schedule


@pytest.fixture(autouse=True)
def _task() -> Iterator[None]:
    def send(order: int, day: datetime | None = None) -> None: ...

    Task(send, name="tests.send")
    factories.add(Factory("tests.orders", "tests.send", lambda at: ([1], {})))
    factories.add(Factory("tests.others", "tests.other", lambda at: ([1], {})))
    yield
    registry.remove("tests.send")
    factories._factories.pop("tests.orders")
    factories._factories.pop("tests.others")


def schedule(**fields: Any) -> Schedule:
    good = {"name": "s", "task": "tests.send", "arguments": {"args": [1], "kwargs": {}}, "interval_seconds": 60}
    return Schedule(**{**good, **fields})


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"task": "tests.sned"}, "task", "did you mean tests.send"),
        ({"name": "a\nb"}, "name", "control character"),
        ({"arguments": {"args": [], "kwargs": {}}}, "arguments", "missing a required argument: 'order'"),
        ({"arguments": {}}, "arguments", "missing a required argument"),
        ({"arguments": [1]}, "arguments", "not a list args"),
        ({"arguments": {"args": [1], "kwargs": {"day": "soon"}}}, "arguments", "kwargs.day"),
        ({"options": {"prioritty": 1}}, "options", "did you mean priority"),
        ({"options": {"priority": 1000}}, "options", "from -100 to 100"),
        ({"options": {"run_at": 1}}, "options", "its rule says when"),
        ({"options": {"use_tz": False}}, "options", "no option 'use_tz'"),
        ({"options": {"defaults": 1, "self": 2}}, "options", "has no option"),
        ({"options": []}, "options", "give an object"),
        ({"factory": "tests.order", "arguments": {}}, "factory", "did you mean tests.orders"),
        ({"factory": "tests.others", "arguments": {}}, "factory", "of task 'tests.other'"),
        ({"factory": "tests.orders"}, "arguments", "leave them empty"),
        ({"interval_seconds": 0}, "interval_seconds", "from one second"),
        ({"expression": "0 25 * * *", "interval_seconds": None}, "expression", "hour"),
        ({"expression": "@daily"}, "expression", "not both"),
        ({"expression": "@daily", "interval_seconds": None, "timezone": "Mars"}, "timezone", "no zone"),
        ({"jitter_seconds": 60}, "jitter_seconds", "shorter than"),
        ({"end_at": datetime(2020, 1, 1, tzinfo=timezone.utc)}, "end_at", "no occurrence"),
    ],
)
def test_a_mistake_is_named_at_its_field(database: str, fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        schedule(**fields).full_clean()
    assert list(refused.value.message_dict) == [field]
    assert message in refused.value.message_dict[field][0]


def test_several_mistakes_are_named_at_once(database: str) -> None:
    wrong = schedule(task="gone", factory="gone", expression="nonsense", interval_seconds=None)
    with pytest.raises(ValidationError) as refused:
        wrong.full_clean()
    assert set(refused.value.message_dict) == {"task", "factory", "expression"}


def test_a_task_that_is_unknown_is_no_mistake_of_its_factory(database: str) -> None:
    with pytest.raises(ValidationError) as refused:
        schedule(task="gone", factory="tests.orders", arguments={}).full_clean()
    assert set(refused.value.message_dict) == {"task"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"arguments": {"args": [], "kwargs": {"order": 1, "day": "2027-01-01T00:00:00+00:00"}}},
        {"factory": "tests.orders", "arguments": {}},
        {"options": {"queue": "mail", "retry": 3, "timeout": 2.5, "tags": {"a": 1}, "execution": "process"}},
        {"expression": "0 7 * * mon-fri", "interval_seconds": None, "timezone": "Europe/Berlin"},
    ],
)
def test_what_a_job_can_be_made_of_passes(database: str, fields: dict[str, Any]) -> None:
    schedule(**fields).full_clean()


def test_the_pure_step_says_what_is_due_and_changes_nothing() -> None:
    noon = datetime(2027, 3, 1, 12, tzinfo=timezone.utc)
    row = Schedule(interval_seconds=60, anchor_at=noon, next_run_at=noon)
    step = row.advance(noon + timedelta(seconds=150))
    assert (step.occurrences, step.missed) == ((noon + timedelta(seconds=120),), 2)
    assert (step.reached, step.next_at) == (noon + timedelta(seconds=120), noon + timedelta(seconds=180))
    assert (row.next_run_at, row.last_occurrence_at) == (noon, None)
