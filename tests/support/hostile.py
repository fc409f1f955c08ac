"""Tasks whose exceptions, results, logs, progress and retry policies fight back."""

from __future__ import annotations

import builtins
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from jobs import CancelJob, Context, NonRetryableError, RetryPolicy, Snooze, job

AGAIN = RetryPolicy(max_retries=2, base_delay=0, jitter=False)
logger = logging.getLogger("shop\0\ud800")
logging.addLevelName(25, "LOUD\0\ud800")


class Fights(Exception):
    def __str__(self) -> str:
        sys.exit("no words")

    __repr__ = __str__

    def with_traceback(self, tb: object) -> Any:
        raise RuntimeError("no traceback")

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise KeyboardInterrupt


class Traceless(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit(9)

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise SystemExit(9)

    __context__ = __cause__


class Lies(Exception):
    __module__ = "a\0b" * 100
    __qualname__ = "L\ud800" * 300

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ValueError("no class")


class WideCancel(CancelJob):
    def __str__(self) -> str:
        raise RuntimeError("no reason")


def _decoded() -> None:
    raise ValueError(b"caf\xe9".decode("ascii", "surrogateescape"))


def _recurse(n: int = 0) -> None:
    _recurse(n + 1)


def _chain() -> None:
    error = ValueError("bites its tail")
    error.__cause__ = error
    raise error


def _group() -> None:
    group: Any = getattr(builtins, "ExceptionGroup", None)  # from Python 3.11 on
    raise ValueError("no groups") if group is None else group("many", [ValueError(str(n)) for n in range(10_000)])


def _raise(error: Callable[[], BaseException]) -> Callable[[], None]:
    def act() -> None:
        raise error()

    return act


RAISES: dict[str, Callable[[], None]] = {
    "fights": _raise(Fights),
    "traceless": _raise(Traceless),
    "lies": _raise(Lies),
    "decoded": _decoded,
    "recursion": _recurse,
    "chain": _chain,
    "group": _group,
    "assertion": _raise(lambda: AssertionError(object())),
    "memory": _raise(MemoryError),
    "generator_exit": _raise(GeneratorExit),
    "wide_cancel": _raise(WideCancel),
    "snooze_nan": lambda: _snooze(float("nan")),
    "give_up": _raise(lambda: NonRetryableError("\0")),
}


def _snooze(seconds: float) -> None:
    raise Snooze(seconds)


class EvilDict(dict[str, Any]):
    def items(self) -> Any:
        sys.exit("no items")

    __iter__ = keys = values = __len__ = items


class EvilList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no items")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class EvilText(str):
    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError("no bytes")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


class EvilNumber(int):
    def __repr__(self) -> str:
        raise RuntimeError("no digits")

    __str__ = __repr__

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("no order")

    __gt__ = __le__ = __ge__ = __lt__


class EvilProxy:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    def __repr__(self) -> str:
        sys.exit("no words")


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(20_000):
        value = [value]
    return value


RETURNS: dict[str, Callable[[], object]] = {
    "evil_dict": lambda: EvilDict(a=1),
    "evil_list": lambda: EvilList([1]),
    "evil_text": lambda: EvilText("a"),
    "evil_key": lambda: {EvilText.__new__(EvilText, "a").lower() and "a": EvilText("b")},
    "evil_number": lambda: EvilNumber(7),
    "evil_proxy": EvilProxy,
    "deep": _deep,
    "long_number": lambda: 10**400,
    "infinity": lambda: [float("inf")],
    "nul_key": lambda: {"\0": 1},
    "bytes": lambda: b"\xff",
    "set": lambda: {1},
}


def _act(how: str) -> object:
    if how in RAISES:
        RAISES[how]()
    return RETURNS[how]()


@job(retry=AGAIN)
def fight(how: str) -> object:
    return _act(how)


@job(retry=AGAIN)
async def afight(how: str) -> object:
    return _act(how)


@job(execution="process", retry=AGAIN)
def pfight(how: str) -> object:
    return _act(how)


def _talk(context: Context) -> str:
    for text in ("a\0b", "\ud800", "x" * 10_000_000):
        logger.error(text)
        logger.log(25, "%s", text)
        context.log(text)
        context.progress(1, 2, text)
    context.progress(2, 3, "a\0b")
    time.sleep(0.3)
    return "said"


@job(takes_context=True)
def talk(context: Context) -> str:
    return _talk(context)


@job(takes_context=True)
async def atalk(context: Context) -> str:
    return _talk(context)


@job(execution="process", takes_context=True)
def ptalk(context: Context) -> str:
    return _talk(context)


def _leave(attempt: int, error: BaseException) -> float:
    sys.exit("no policy")


def _overflow(attempt: int, error: BaseException) -> float:
    return float("inf") * 0


@job(retry=RetryPolicy(max_retries=5, backoff=_leave))
def policy_exits(seconds: float = 0.0) -> None:
    time.sleep(seconds)
    raise ValueError("and my policy leaves")


@job(retry=RetryPolicy(max_retries=5, backoff=_overflow))
def policy_overflows(seconds: float = 0.0) -> None:
    time.sleep(seconds)
    raise ValueError("and my policy overflows")
