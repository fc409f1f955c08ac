"""Whether and when a failed job runs again."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from jobs.domain.duration import YEAR_SECONDS, seconds_of
from jobs.domain.errors import InvalidOption, NonRetryableError
from jobs.domain.text import shown

MAX_RETRIES = 2_147_483_647
"""What the column holds; it stands for "without end"."""

Backoff = Callable[[int, BaseException], float | timedelta | None]
"""Attempt number from 1 and its exception -> how long to wait; None gives up."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter, or a task's own `backoff`.

    Delays are seconds or timedeltas, kept as seconds. `give_up_on` wins over `retry_on`; an empty `retry_on`
    means every exception.
    """

    max_retries: int = 0
    base_delay: float | timedelta = 1
    max_delay: float | timedelta = 300
    jitter: bool = True
    give_up_on: tuple[type[BaseException], ...] = ()
    retry_on: tuple[type[BaseException], ...] = ()
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if type(self.max_retries) is not int or not 0 <= self.max_retries <= MAX_RETRIES:
            raise InvalidOption(f"max_retries must be a whole number from 0 to {MAX_RETRIES}")
        if type(self.jitter) is not bool:
            raise InvalidOption("jitter must be True or False")
        if self.backoff is not None and (not callable(self.backoff) or inspect.iscoroutinefunction(self.backoff)):
            raise InvalidOption("backoff must be a plain function of (attempt, exception)")
        object.__setattr__(self, "base_delay", seconds_of(self.base_delay, "base_delay"))
        object.__setattr__(self, "max_delay", seconds_of(self.max_delay, "max_delay"))
        object.__setattr__(self, "give_up_on", _exception_classes(self.give_up_on, "give_up_on"))
        object.__setattr__(self, "retry_on", _exception_classes(self.retry_on, "retry_on"))

    @classmethod
    def of(cls, value: RetryPolicy | Backoff | int | None) -> RetryPolicy:
        """A policy, a number of retries, a bare `backoff` (which decides alone when to give up), or None."""
        if isinstance(value, RetryPolicy):
            return value
        if value is None:
            return cls()
        if type(value) is int:
            return cls(max_retries=value)
        if callable(value) and not isinstance(value, type):
            return cls(max_retries=MAX_RETRIES, backoff=value)
        raise InvalidOption(f"retry={shown(value)}: give a RetryPolicy, a number of retries, a function or None")

    @property
    def base_seconds(self) -> float:
        return cast(float, self.base_delay)

    @property
    def max_seconds(self) -> float:
        return cast(float, self.max_delay)

    def delay(self, attempt: int, rng: random.Random) -> float:
        """Seconds to wait after this attempt (from 1) failed: min(max_delay, base_delay * 2 ** (attempt - 1))."""
        return _delay(attempt, self.base_seconds, self.max_seconds, self.jitter, rng)

    def retries(self, exception: BaseException) -> bool:
        """Whether this exception is one to retry, however many retries are left."""
        kind = type(exception)
        if issubclass(kind, (NonRetryableError, *self.give_up_on)):
            return False
        return not self.retry_on or issubclass(kind, self.retry_on)


def retry_after(
    policy: RetryPolicy,
    exception: BaseException,
    *,
    failures: int,
    max_retries: int,
    base_seconds: float,
    max_seconds: float,
    jitter: bool,
    rng: random.Random,
) -> float | None:
    """Seconds until the next attempt, 0 to 366 days; None: no more retries.

    The numbers come from the job's row, the classes and `backoff` from the code. `failures` counts those before
    this one. Raises whatever the task's own `backoff` or exception classes raise, and `InvalidOption` for a
    delay that is none: the runner records the failure nevertheless.
    """
    if failures >= max_retries or not policy.retries(exception):
        return None
    attempt = failures + 1
    if policy.backoff is None:
        return min(_delay(attempt, base_seconds, max_seconds, jitter, rng), YEAR_SECONDS)
    chosen = policy.backoff(attempt, exception)
    if chosen is None:
        return None
    if isinstance(chosen, float) and chosen == math.inf:
        return YEAR_SECONDS
    return min(seconds_of(chosen, "the delay that backoff gave"), YEAR_SECONDS)


def _delay(attempt: int, base_seconds: float, max_seconds: float, jitter: bool, rng: random.Random) -> float:
    try:
        longest = min(max_seconds, math.ldexp(base_seconds, max(0, attempt - 1)))
    except OverflowError:
        longest = max_seconds
    return rng.uniform(0.0, longest) if jitter else longest


def _exception_classes(value: object, name: str) -> tuple[type[BaseException], ...]:
    classes = tuple(value) if isinstance(value, (tuple, list, set, frozenset)) else (value,)
    for one in classes:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise InvalidOption(f"{name} takes exception classes, not {shown(one)}")
    return classes
