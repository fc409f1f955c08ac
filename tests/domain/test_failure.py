from __future__ import annotations

import builtins
import gc
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from jobs.domain import failure as failure_module
from jobs.domain.errors import NonRetryableError
from jobs.domain.failure import describe, system_failure
from jobs.domain.outcome import Failure
from jobs.domain.strict_json import dumps

SECONDS = 2.0


def raised(function: Callable[..., Any], *args: Any) -> BaseException:
    try:
        function(*args)
    except BaseException as exception:
        return exception
    raise AssertionError("nothing was raised")


def described(exception: BaseException) -> Failure:
    """Describe in bounded time, and prove that the result can be stored."""
    started = time.perf_counter()
    failure = describe(exception)
    assert time.perf_counter() - started < SECONDS
    for text in (failure.exception_class, failure.message, failure.traceback, failure.module, failure.function):
        assert type(text) is str
        assert "\0" not in text
        text.encode()
    assert len(failure.message.encode()) <= 4 * 1024
    assert len(failure.traceback.encode()) <= 64 * 1024
    assert len(failure.causes) <= 10
    return failure


def fail_plainly() -> None:
    secret = "not to be shown"  # noqa: F841
    raise ValueError("no such order")


def test_an_exception_becomes_its_class_message_and_traceback() -> None:
    failure = described(raised(fail_plainly))
    assert failure.exception_class == "builtins.ValueError"
    assert failure.message == "no such order"
    assert failure.causes == ()
    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert ', in fail_plainly\n    raise ValueError("no such order")\n' in failure.traceback
    assert failure.traceback.endswith("ValueError: no such order\n")
    assert "not to be shown" not in failure.traceback.replace('secret = "not to be shown"', "")


def test_an_exception_that_was_never_raised_has_no_traceback_but_a_last_line() -> None:
    assert described(KeyError()).traceback == "KeyError\n"


def fail_inside_a_library() -> None:
    json.loads("{")


def fail_inside_the_project_inside_a_library() -> None:
    json.loads("{}", object_hook=lambda found: fail_plainly())


def fail_inside_the_jobs_package() -> None:
    dumps({1}, root="x", max_bytes=100)


@pytest.mark.parametrize(
    ("function", "innermost"),
    [
        (fail_plainly, "fail_plainly"),
        (fail_inside_a_library, "fail_inside_a_library"),
        (fail_inside_the_project_inside_a_library, "fail_plainly"),
        (fail_inside_the_jobs_package, "fail_inside_the_jobs_package"),
    ],
)
def test_the_innermost_frame_of_the_project_is_named(function: Callable[[], None], innermost: str) -> None:
    failure = described(raised(function))
    assert (failure.module, failure.function) == (__name__, innermost)


def test_frames_of_installed_packages_are_not_the_projects_own() -> None:
    code = compile("def fail(): raise KeyError", "/srv/venv/lib/python3.11/site-packages/thing/core.py", "exec")
    namespace: dict[str, Any] = {"__name__": "thing.core"}
    exec(code, namespace)  # noqa: S102
    failure = describe(raised(namespace["fail"]))
    assert failure.module == __name__
    assert failure.function == "raised"


def test_causes_follow_what_python_would_show() -> None:
    def explicit() -> None:
        try:
            fail_plainly()
        except ValueError as cause:
            raise KeyError("x") from cause

    def implicit() -> None:
        try:
            explicit()
        except KeyError:
            raise OSError("y")  # noqa: B904

    def suppressed() -> None:
        try:
            explicit()
        except KeyError:
            raise OSError("y") from None

    failure = described(raised(implicit))
    assert failure.causes == ("builtins.KeyError", "builtins.ValueError")
    assert failure.traceback.index("no such order") < failure.traceback.index("direct cause of the following")
    assert failure.traceback.index("direct cause") < failure.traceback.index("During handling of the above")
    assert described(raised(suppressed)).causes == ()


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = KeyError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert described(first).causes == ("builtins.ValueError",)
    first.__cause__ = first
    assert described(first).causes == ()


def test_a_chain_of_ten_thousand_causes_is_cut_at_ten() -> None:
    exception: BaseException = ValueError("0")
    for number in range(10_000):
        following = ValueError(str(number))
        following.__cause__ = exception
        exception = following
    assert described(exception).causes == ("builtins.ValueError",) * 10


class Hostile(Exception):
    def __str__(self) -> str:
        sys.exit("never")

    __repr__ = __str__

    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise KeyboardInterrupt

    __context__ = __traceback__ = __notes__ = exceptions = __suppress_context__ = __cause__  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int


Hostile.__module__ = None  # type: ignore[assignment]


def test_an_exception_that_fights_back_is_described_all_the_same() -> None:
    def fail() -> None:
        raise Hostile

    failure = described(raised(fail))
    assert failure.exception_class == "Hostile"
    assert failure.message == "<the exception's __str__ failed>"
    assert "in fail\n" in failure.traceback
    assert failure.function.endswith("fail")


@pytest.mark.parametrize("wrong", [None, 5, b"x"])
def test_a_str_that_gives_no_text_is_survived(wrong: object) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return wrong  # type: ignore[return-value]

    assert described(Odd()).message == "<the exception's __str__ failed>"


def test_a_message_of_fifty_megabytes_keeps_its_head_and_tail() -> None:
    failure = described(ValueError("begin" + "x" * 50_000_000 + "end"))
    assert failure.message.startswith("begin")
    assert failure.message.endswith("end")
    assert "characters left out" in failure.message


def test_nul_and_surrogates_are_escaped_everywhere() -> None:
    failure = described(type("Odd", (Exception,), {"__module__": "m\0\ud800"})("a\0b\udfff"))
    assert failure.message == r"a\u0000b\udfff"
    assert failure.exception_class == r"m\u0000\ud800.Odd"


def test_a_hundred_thousand_frames_are_shown_by_head_and_tail() -> None:
    found: list[Failure] = []

    def sink(depth: int) -> None:
        if depth == 0:
            raise RecursionError("too deep")
        sink(depth - 1)

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(120_000)
        try:
            exception = raised(sink, 100_000)
        finally:
            sys.setrecursionlimit(limit)
        found.append(described(exception))

    threading.stack_size(512 * 1024 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(0)
    thread.join(60)
    [failure] = found
    assert "frames left out" in failure.traceback
    assert failure.traceback.count("\n  File ") == 80
    assert failure.function.endswith("sink")


def test_a_real_recursion_error_is_described() -> None:
    def forever() -> None:
        forever()

    assert described(raised(forever)).exception_class == "builtins.RecursionError"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_a_group_of_ten_thousand_shows_a_few_of_its_members() -> None:
    group: Any = getattr(builtins, "BaseExceptionGroup")  # noqa: B009 - mypy and ruff check for Python 3.10
    members = [raised(fail_plainly), *(KeyError(number) for number in range(9_999))]
    failure = described(group("many", members))
    assert failure.message == "many (10000 sub-exceptions)"
    assert "  | ValueError: no such order\n" in failure.traceback
    assert "in fail_plainly" in failure.traceback
    assert "  | ... and 9995 more exceptions\n" in failure.traceback
    nested: BaseException = KeyError("bottom")
    for level in range(500):
        nested = group(str(level), [nested])
    assert "499" in described(nested).message


def test_notes_are_kept_and_bounded() -> None:
    exception: Any = ValueError("x")
    exception.__notes__ = ["see order 7", 5, "y" * 10_000_000]
    failure = described(exception)
    assert "see order 7\n" in failure.traceback
    exception.__notes__ = 7
    assert described(exception).traceback == "ValueError: x\n"


@pytest.mark.parametrize("filename", ["<generated>", "with\0nul", "with\ud800surrogate", "/no/such/file.py", ""])
def test_code_from_nowhere_is_described(filename: str) -> None:
    try:
        code = compile("def fail(): raise KeyError", filename.replace("\0", ""), "exec")
        code = code.replace(co_filename=filename, co_consts=tuple(_renamed(one, filename) for one in code.co_consts))
    except UnicodeEncodeError:
        return
    namespace: dict[str, Any] = {"__name__": 5}
    exec(code, namespace)  # noqa: S102
    assert "in fail\n" in described(raised(namespace["fail"])).traceback


def _renamed(constant: Any, filename: str) -> Any:
    return constant.replace(co_filename=filename) if hasattr(constant, "co_filename") else constant


def test_when_everything_breaks_the_class_is_still_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(exception: BaseException) -> Any:
        raise MemoryError

    monkeypatch.setattr(failure_module, "chain_of", broken)
    assert describe(KeyError("x")) == Failure("builtins.KeyError", "<this exception could not be described>", "")


def test_nothing_of_the_exception_is_kept_alive() -> None:
    class Payload:
        pass

    class Loaded(Exception):
        def __str__(self) -> str:
            raise ValueError("from __str__")

    def fail() -> None:
        payload = Payload()
        kept.append(weakref.ref(payload))
        raise Loaded

    kept: list[weakref.ref[Any]] = []
    gc.disable()  # reference counts alone must do
    try:
        exception = raised(fail)
        kept.append(weakref.ref(exception))
        describe(exception)
        del exception
        assert [one() for one in kept] == [None, None]
    finally:
        gc.enable()


def test_a_system_failure_has_a_kind_and_a_message_only() -> None:
    assert system_failure("jobs.WorkerDied", "gone\0") == Failure("jobs.WorkerDied", r"gone\u0000", "")


def test_as_a_line_a_failure_is_what_python_would_call_it_and_its_first_line() -> None:
    assert str(described(ValueError("\n no such order \nfoot note"))) == "ValueError: no such order"
    assert str(described(ValueError())) == "ValueError"
    assert str(described(NonRetryableError("give up"))) == "jobs.domain.errors.NonRetryableError: give up"
    assert str(described(ValueError("x" * 1000))).endswith("xxx...")
    # Ours are sentences of their own.
    assert str(system_failure("jobs.WorkerDied", "worker died: lost 4 times")) == "worker died: lost 4 times"
