from __future__ import annotations

import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.domain.duration import YEAR_SECONDS
from jobs.domain.errors import InvalidOption, NonRetryableError
from jobs.domain.retry import MAX_RETRIES, RetryPolicy, retry_after

seconds = st.floats(0, allow_infinity=False, allow_nan=False)


def steady(**given: Any) -> RetryPolicy:
    return RetryPolicy(jitter=False, **given)


def test_delays_double_up_to_the_longest() -> None:
    policy = steady(max_retries=9, base_delay=2, max_delay=30)
    rng = random.Random(1)
    assert [policy.delay(attempt, rng) for attempt in range(1, 7)] == [2, 4, 8, 16, 30, 30]


@given(seconds, seconds, st.integers(1, 10**12), st.booleans(), st.integers())
def test_a_delay_is_never_negative_and_never_beyond_the_longest(
    base: float, longest: float, attempt: int, jitter: bool, seed: int
) -> None:
    policy = RetryPolicy(base_delay=base, max_delay=longest, jitter=jitter)
    assert 0 <= policy.delay(attempt, random.Random(seed)) <= longest


@given(seconds, seconds, st.integers(1, 1000))
def test_a_delay_is_the_formula(base: float, longest: float, attempt: int) -> None:
    try:
        expected = min(longest, base * 2.0 ** (attempt - 1))
    except OverflowError:
        expected = longest
    assert steady(base_delay=base, max_delay=longest).delay(attempt, random.Random(1)) == expected


@pytest.mark.parametrize("attempt", [1, 1024, 1025, 10_000, 10**30])
@pytest.mark.parametrize("base", [0, 5e-324, 1, timedelta.max, 1e308])
def test_extreme_delays_do_not_overflow(base: float | timedelta, attempt: int) -> None:
    policy = RetryPolicy(base_delay=base, max_delay=timedelta.max)
    assert 0 <= policy.delay(attempt, random.Random(1)) <= timedelta.max.total_seconds()


def test_full_jitter_spreads_over_the_whole_delay() -> None:
    rng = random.Random(7)
    drawn = [RetryPolicy(base_delay=10).delay(1, rng) for _ in range(2000)]
    assert min(drawn) < 0.5
    assert max(drawn) > 9.5
    assert 4.7 < sum(drawn) / len(drawn) < 5.3


def test_delays_are_kept_as_seconds() -> None:
    policy = RetryPolicy(base_delay=timedelta(minutes=1), max_delay=90)
    assert (policy.base_delay, policy.base_seconds, policy.max_seconds) == (60.0, 60.0, 90.0)
    assert policy == RetryPolicy(base_delay=60, max_delay=timedelta(seconds=90))
    assert isinstance(policy.max_seconds, float)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 1.0}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"max_retries": MAX_RETRIES + 1}, "max_retries"),
        ({"base_delay": -1}, "base_delay"),
        ({"base_delay": math.nan}, "base_delay"),
        ({"base_delay": "1"}, "base_delay"),
        ({"base_delay": True}, "base_delay"),
        ({"max_delay": math.inf}, "max_delay"),
        ({"max_delay": 10**6000}, "max_delay"),
        ({"max_delay": timedelta(seconds=-1)}, "max_delay"),
        ({"max_delay": None}, "max_delay"),
        ({"jitter": 1}, "jitter"),
        ({"give_up_on": (1,)}, "give_up_on"),
        ({"retry_on": int}, "retry_on"),
        ({"retry_on": ValueError()}, "retry_on"),
        ({"backoff": 5}, "backoff"),
    ],
)
def test_a_bad_field_is_refused_by_its_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidOption, match=f"^{named}"):
        RetryPolicy(**given)


def test_a_coroutine_function_is_no_backoff() -> None:
    async def later(attempt: int, exception: BaseException) -> float:
        return 1

    with pytest.raises(InvalidOption, match="backoff"):
        RetryPolicy(backoff=later)  # type: ignore[arg-type]


def test_which_exceptions_are_retried() -> None:
    assert RetryPolicy().retries(KeyError())
    assert RetryPolicy().retries(SystemExit())
    assert not RetryPolicy(retry_on=(NonRetryableError,)).retries(NonRetryableError())
    narrow = RetryPolicy(retry_on=(LookupError,), give_up_on=(KeyError,))
    assert narrow.retries(IndexError())
    assert not narrow.retries(KeyError())  # give_up_on wins
    assert not narrow.retries(ValueError())
    assert RetryPolicy(retry_on=LookupError).retry_on == (LookupError,)  # type: ignore[arg-type]


def test_an_exception_that_lies_about_its_class_is_judged_by_its_real_one() -> None:
    class Liar(KeyError):
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            return ValueError

    assert RetryPolicy(retry_on=(ValueError,)).retries(Liar()) is False


def test_a_policy_is_made_of_what_callers_write() -> None:
    def every_minute(attempt: int, exception: BaseException) -> float:
        return 60

    policy = RetryPolicy(max_retries=2)
    assert RetryPolicy.of(policy) is policy
    assert RetryPolicy.of(None) == RetryPolicy(max_retries=0)
    assert RetryPolicy.of(3) == RetryPolicy(max_retries=3)
    assert RetryPolicy.of(every_minute) == RetryPolicy(max_retries=MAX_RETRIES, backoff=every_minute)
    for wrong in ("x", True, 1.5, RetryPolicy, -1):
        with pytest.raises(InvalidOption):
            RetryPolicy.of(wrong)  # type: ignore[arg-type]


def after(policy: RetryPolicy, exception: BaseException, failures: int, **numbers: Any) -> float | None:
    row = {"max_retries": 3, "base_seconds": 2.0, "max_seconds": 300.0, "jitter": False} | numbers
    return retry_after(policy, exception, failures=failures, rng=random.Random(1), **row)


def test_the_numbers_of_the_row_win_over_those_of_the_code() -> None:
    policy = RetryPolicy(max_retries=0, base_delay=99)
    assert [after(policy, KeyError(), failures) for failures in range(4)] == [2, 4, 8, None]


def test_the_classes_come_from_the_code() -> None:
    policy = RetryPolicy(give_up_on=(KeyError,))
    assert after(policy, KeyError(), 0) is None
    assert after(policy, TimeoutError(), 0) == 2
    assert after(policy, NonRetryableError(), 0) is None


def test_a_backoff_of_the_task_decides_and_is_kept_within_a_year() -> None:
    asked: list[tuple[int, BaseException]] = []
    answers: list[Any] = [5, timedelta(minutes=1), None, 1e18, math.inf, 0]

    def backoff(attempt: int, exception: BaseException) -> Any:
        asked.append((attempt, exception))
        return answers[attempt - 1]

    error = KeyError()
    policy = RetryPolicy.of(backoff)
    given = [after(policy, error, failures, max_retries=6) for failures in range(7)]
    assert given == [5, 60, None, YEAR_SECONDS, YEAR_SECONDS, 0, None]
    assert asked == [(attempt, error) for attempt in range(1, 7)]


@pytest.mark.parametrize("wrong", [math.nan, -1, timedelta(seconds=-1), "5", True, [5]])
def test_a_backoff_that_gives_no_delay_is_an_error_for_the_runner(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="the delay that backoff gave"):
        after(RetryPolicy.of(lambda attempt, exception: wrong), KeyError(), 0)


def test_what_a_backoff_raises_reaches_the_runner() -> None:
    def broken(attempt: int, exception: BaseException) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        after(RetryPolicy.of(broken), KeyError(), 0)


def test_the_longest_wait_is_a_year_so_that_the_due_time_stays_a_date() -> None:
    assert after(RetryPolicy(), KeyError(), 0, base_seconds=1e300, max_seconds=1e300) == YEAR_SECONDS
