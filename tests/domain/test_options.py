from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.domain.errors import InvalidOption
from jobs.domain.execution import Execution
from jobs.domain.options import SubmitOptions, TaskOptions, UniqueScope, require_aware, submission, task_options
from jobs.domain.priority import Priority
from jobs.domain.retry import RetryPolicy

NOON = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
NAIVE = NOON.replace(tzinfo=None)


def test_a_task_without_options_has_the_documented_defaults() -> None:
    options = task_options()
    assert options == TaskOptions()
    assert (options.queue, options.priority, options.timeout_seconds, options.max_lost) == ("default", 0, None, 3)
    assert (options.at_most_once, options.takes_context, options.store_result) == (False, False, True)
    assert options.retry == RetryPolicy(max_retries=0)
    assert (options.execution, options.execution_chosen) == (Execution.THREAD, False)


def test_options_arrive_in_the_form_that_is_stored() -> None:
    options = task_options(
        queue="mail",
        priority=Priority.HIGH,
        timeout=timedelta(minutes=1),
        retry=5,
        execution="process",
        at_most_once=True,
        max_lost=0,
        takes_context=True,
        store_result=False,
    )
    assert options == TaskOptions(
        queue="mail",
        priority=50,
        timeout_seconds=60.0,
        retry=RetryPolicy(max_retries=5),
        execution=Execution.PROCESS,
        execution_chosen=True,
        at_most_once=True,
        max_lost=0,
        takes_context=True,
        store_result=False,
    )
    assert type(options.priority) is int
    assert task_options(timeout=None, execution=None, retry=None) == TaskOptions()
    assert task_options(timeout=1e-4).timeout_seconds == 1e-4


@pytest.mark.parametrize(
    "given",
    [
        {"queue": ""},
        {"queue": "q" * 65},
        {"queue": "a\nb"},
        {"queue": None},
        {"priority": 101},
        {"priority": -101},
        {"priority": 1.0},
        {"priority": True},
        {"priority": None},
        {"priority": 10**6000},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": math.nan},
        {"timeout": math.inf},
        {"timeout": timedelta(days=367)},
        {"timeout": 1e12},
        {"timeout": timedelta(0)},
        {"timeout": "30"},
        {"timeout": True},
        {"retry": "often"},
        {"execution": "fork"},
        {"execution": []},
        {"at_most_once": 1},
        {"max_lost": -1},
        {"max_lost": 2**15},
        {"max_lost": 10**12},
        {"priority": 10**12},
        {"takes_context": None},
        {"store_result": "no"},
    ],
    ids=lambda given: ",".join(given),
)
def test_a_bad_task_option_is_refused_by_its_name(given: dict[str, Any]) -> None:
    [name] = given
    with pytest.raises(InvalidOption, match=f"^{name}"):
        task_options(**given)
    if name != "takes_context" and given != {"execution": None}:
        with pytest.raises(InvalidOption, match=f"^{name}"):
            submission(TaskOptions(), **given)


def test_an_unknown_option_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidOption, match="a task has no option 'time_out'; did you mean timeout") as refused:
        task_options(time_out=5)
    assert "at_most_once, execution, max_lost" in str(refused.value)
    with pytest.raises(InvalidOption, match="a submission has no option 'xyz'") as refused:
        submission(TaskOptions(), xyz=1)
    assert "delay, execution, expires_at" in str(refused.value)


@pytest.mark.parametrize("name", ["name", "takes_context"])
def test_what_belongs_to_the_task_cannot_be_changed_by_a_submission(name: str) -> None:
    with pytest.raises(InvalidOption, match=f"{name} belongs to the task"):
        submission(TaskOptions(), use_tz=True, **{name: None})


def test_a_submission_without_changes_keeps_the_tasks_options() -> None:
    defaults = task_options(queue="mail", timeout=5)
    assert submission(defaults) == (defaults, SubmitOptions())


def test_a_submission_changes_what_it_names_and_nothing_else() -> None:
    defaults = task_options(queue="mail", timeout=5, priority=10, execution="thread")
    changed, added = submission(
        defaults,
        priority=Priority.LOW,
        timeout=None,
        execution="process",
        delay=timedelta(seconds=60),
        deadline=datetime(2026, 7, 1, 14, tzinfo=ZoneInfo("Europe/Berlin")),
        expires_at=NOON,
        unique_key="receipt-42",
        unique_scope="until_started",
        tags={"customer": 7, "kind": "gold", "paid": True, "share": 0.5},
        meta={"why": ["x", None]},
    )
    assert (changed.queue, changed.priority, changed.timeout_seconds) == ("mail", -50, None)
    assert changed.execution is Execution.PROCESS
    assert added == SubmitOptions(
        delay_seconds=60.0,
        deadline=NOON,
        expires_at=NOON,
        unique_key="receipt-42",
        unique_scope=UniqueScope.UNTIL_STARTED,
        tags={"customer": 7, "kind": "gold", "paid": True, "share": 0.5},
        meta={"why": ["x", None]},
    )
    assert added.deadline is not None
    assert added.deadline.tzinfo is timezone.utc
    assert submission(defaults, execution=None, run_at=None, delay=None, unique_key=None, tags=None)[0] == defaults


def test_a_second_using_adds_to_the_first() -> None:
    options, first = submission(TaskOptions(), delay=60, unique_key="k", meta={"a": 1})
    _, second = submission(options, first, unique_scope="until_started", tags={"b": 2})
    assert second == SubmitOptions(
        delay_seconds=60.0, unique_key="k", unique_scope=UniqueScope.UNTIL_STARTED, meta={"a": 1}, tags={"b": 2}
    )
    _, third = submission(options, second, run_at=NOON)
    assert (third.run_at, third.delay_seconds) == (NOON, None)
    _, fourth = submission(options, third, delay=5)
    assert (fourth.run_at, fourth.delay_seconds) == (None, 5.0)


def test_only_thread_and_process_can_be_exchanged() -> None:
    on_the_loop = TaskOptions(execution=Execution.ASYNC)
    assert submission(on_the_loop, execution="async")[0].execution is Execution.ASYNC
    with pytest.raises(InvalidOption, match="execution"):
        submission(on_the_loop, execution="thread")
    with pytest.raises(InvalidOption, match="execution"):
        submission(TaskOptions(), execution="async")


def test_a_submission_changes_the_numbers_of_the_retry_policy_but_not_its_classes() -> None:
    own = RetryPolicy(max_retries=1, give_up_on=(KeyError,), retry_on=(LookupError,))
    defaults = TaskOptions(retry=own)
    changed, _ = submission(defaults, retry=RetryPolicy(max_retries=9, base_delay=7))
    assert changed.retry == RetryPolicy(max_retries=9, base_delay=7, give_up_on=(KeyError,), retry_on=(LookupError,))
    assert submission(defaults, retry=2)[0].retry.give_up_on == (KeyError,)
    assert submission(defaults, retry=own)[0] == defaults
    with pytest.raises(InvalidOption, match="give_up_on belongs to the task"):
        submission(defaults, retry=RetryPolicy(give_up_on=(ValueError,)))
    with pytest.raises(InvalidOption, match="backoff belongs to the task"):
        submission(defaults, retry=lambda attempt, exception: 5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"run_at": NOON, "delay": 5}, "run_at or delay, not both"),
        ({"run_at": NAIVE}, r"run_at=.* is naive.*django\.utils\.timezone\.make_aware"),
        ({"deadline": NAIVE}, "deadline=.* is naive"),
        ({"expires_at": NAIVE}, "expires_at=.* is naive"),
        ({"run_at": date(2026, 7, 1)}, "run_at=.*give a datetime"),
        ({"run_at": "2026-07-01"}, "run_at=.*give a datetime"),
        ({"run_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))}, "outside the years"),
        ({"delay": -1}, "delay"),
        ({"delay": math.nan}, "delay"),
        ({"delay": timedelta(days=3654)}, "delay.*at most 3653 days"),
        ({"delay": 1e12}, "delay.*at most 3653 days"),
        ({"retry": 10**12}, "retry|max_retries"),
        ({"run_at": NOON, "expires_at": NOON}, "the job could never start"),
        ({"unique_key": ""}, "unique_key must have 1 to 200 characters"),
        ({"unique_key": "k" * 201}, "unique_key must have 1 to 200 characters; this one has 201"),
        ({"unique_key": "a\0"}, "unique_key.*control character"),
        ({"unique_key": "a\ud800"}, "unique_key.*lone surrogate"),
        ({"unique_key": 42}, "unique_key=42: give text"),
        ({"unique_key": "k", "unique_scope": "for ever"}, "unique_scope.*'until_started', 'until_finished'"),
        ({"unique_scope": "until_started"}, "unique_scope needs a unique_key"),
        ({"tags": ["a"]}, "tags=.*give a dict"),
        ({"tags": {"a": None}}, r"tags\.a=None"),
        ({"tags": {"a": [1]}}, r"tags\.a=\[1\]"),
        ({"tags": {"": 1}}, "tag '' must have 1 to 64"),
        ({"tags": {"a": "x" * 201}}, r"tags\.a has 201 characters"),
        ({"tags": {"a": math.nan}}, r"tags\.a is nan"),
        ({"meta": {"rows": [math.nan]}}, r"meta\.rows\[0\] is nan"),
        ({"meta": {"a": "x" * 8192}}, "meta takes more than 8192 bytes"),
        ({"meta": {1: 2}}, "meta has a key that is 1"),
        ({"meta": 5}, "meta=5: give a dict"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_bad_submission_is_refused_with_words(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        submission(TaskOptions(), **given)


def test_the_largest_allowed_values_are_taken() -> None:
    _, added = submission(
        TaskOptions(),
        delay=timedelta(days=3653),
        unique_key="é" * 200,
        tags={"é" * 64: "é" * 200},
        meta={"a": "x" * 8184},
    )
    assert added.unique_key == "é" * 200
    assert added.delay_seconds == 3653 * 86400


def test_meta_is_a_copy_of_what_the_caller_goes_on_changing() -> None:
    meta = {"rows": [1]}
    _, added = submission(TaskOptions(), meta=meta)
    meta["rows"].append(2)
    assert added.meta == {"rows": [1]}


def test_without_use_tz_a_naive_instant_is_left_to_the_door() -> None:
    assert require_aware(NAIVE, "run_at", use_tz=False) is NAIVE
    _, added = submission(TaskOptions(), use_tz=False, run_at=NAIVE, expires_at=NOON)
    assert added.run_at is NAIVE
    with pytest.raises(InvalidOption, match="could never start"):
        submission(TaskOptions(), use_tz=False, run_at=NAIVE, expires_at=NAIVE)
