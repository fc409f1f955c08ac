"""Run one job's body and say how it ended: the same pipeline in a thread, on the loop and in a child process."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import CoroutineType, TracebackType
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import connections

from jobs.domain.claim import Claim
from jobs.domain.context import Context
from jobs.domain.errors import CancelJob, JobsError, NotStorable, Snooze
from jobs.domain.exhaustive import assert_never
from jobs.domain.failure import TRACEBACK_BYTES, clean_text, describe, system_failure
from jobs.domain.outcome import MAX_RESULT_BYTES, Ending, Failure, Outcome
from jobs.domain.registry import registry
from jobs.domain.retry import retry_after
from jobs.domain.stop import StopReason, StopSignal
from jobs.domain.strict_json import dumps
from jobs.domain.task import TaskDefinition
from jobs.domain.text import class_path, is_cut, shown
from jobs.domain.value import value
from jobs.engine import log_capture
from jobs.engine.borrowed import Borrowed
from jobs.engine.surroundings import clean_connections, heal_connections

MAX_SNOOZES = 1000
_OUR_MODULES = (__name__, "jobs.domain.task")

logger = logging.getLogger(__name__)


@value
class Body:
    """A claim with everything its run needs."""

    claim: Claim
    definition: TaskDefinition
    context: Context
    stop: StopSignal
    rng: random.Random

    def call(self) -> Any:
        """Decode the arguments and call the function; a coroutine function gives its coroutine."""
        args, kwargs = self.definition.parameters.decode(self.claim.arguments)
        if self.definition.options.takes_context:
            args = [self.context, *args]
        return self.definition.function(*args, **kwargs)


def run(body: Body, *, own_connections: bool = True) -> Outcome:
    """Run the body in this thread. Never raises, whatever the job does.

    The body gets a fresh context: language, time zone and context variables of one job never reach the next.
    `own_connections=False`: the thread's database connections, and the transactions open there, are the caller's.
    """
    return contextvars.Context().run(_run, body, own_connections)


def _run(body: Body, own_connections: bool) -> Outcome:
    buffer = log_capture.LogBuffer()
    log_capture.current.set(buffer)
    tidy: Callable[[], str] = clean_connections if own_connections else lambda: ""
    try:
        if own_connections:
            heal_connections()
        else:
            tidy = Borrowed().take_back
        result = body.call()
        if issubclass(type(result), CoroutineType):  # not isinstance(), which asks the result for its __class__
            result = async_to_sync(_awaited)(result)
        body.stop.body_over = True
        outcome = _returned(body, result)
        del result
    except BaseException as exception:  # noqa: BLE001 - whatever a job does is one outcome
        body.stop.body_over = True
        outcome = _raised(body, exception)
    return _with_log(_cleaned(outcome, _never_raising(tidy)), buffer)


def _with_log(outcome: Outcome, buffer: log_capture.LogBuffer) -> Outcome:
    lines = buffer.lines()
    return replace(outcome, log=lines) if lines else outcome


async def _awaited(coroutine: Awaitable[Any]) -> Any:
    return await coroutine


async def arun(body: Body) -> Outcome:
    """The same on the running loop. The caller gives it a fresh context (a task created in one)."""
    buffer = log_capture.LogBuffer()
    log_capture.current.set(buffer)
    left_open = ""
    async with SyncThread() as sync_thread:
        try:
            coroutine: Awaitable[Any] = body.call()
            outcome = _returned(body, await coroutine)
        except BaseException as exception:
            if thrown_away():
                raise
            outcome = _raised(body, exception)
        if sync_thread in SyncToAsync.context_to_thread_executor:
            left_open = await _in_its_sync_thread(_close_everything)
    return _with_log(_cleaned(outcome, left_open), buffer)


def thrown_away() -> bool:
    """Whether the coroutine that asks is destroyed after its loop, after a stop: nobody waits for it, and nothing runs
    its awaits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


class SyncThread(ThreadSensitiveContext):
    """Of one async job. It is not left by a coroutine that is thrown away, which happens in a foreign context."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not thrown_away():
            await super().__aexit__(kind, error, trace)  # type: ignore[no-untyped-call]


async def _in_its_sync_thread(function: Callable[[], str]) -> str:
    try:
        return await sync_to_async(function, thread_sensitive=True)()
    except BaseException as error:  # noqa: BLE001 - a cancelled task still has to say how its body ended
        return (
            "" if isinstance(error, asyncio.CancelledError) else f"its connections could not be closed: {shown(error)}"
        )


def _close_everything() -> str:
    left_open = clean_connections()
    # The job's sync thread ends with it; a connection left in it would be nobody's.
    connections.close_all()
    return left_open


def _never_raising(function: Callable[[], str]) -> str:
    try:
        return function()
    except BaseException as error:  # noqa: BLE001 - cleaning up must not lose the outcome
        return f"its connections could not be cleaned: {shown(error)}"


def _returned(body: Body, result: object) -> Outcome:
    if body.stop.reason is StopReason.TIMEOUT:
        return _timed_out(body, None)
    if not body.claim.store_result or result is None:
        return Outcome(Ending.COMPLETED)
    try:
        return Outcome(Ending.COMPLETED, result=dumps(result, root="result", max_bytes=MAX_RESULT_BYTES))
    except NotStorable as error:
        why = str(error)
    except BaseException as error:  # noqa: BLE001 - a result may fight whoever looks at it
        why = f"reading the result raised {class_path(type(error))}"
    # The work is done: running it again would not make its result storable.
    return Outcome(Ending.FAILED, failure=system_failure("jobs.ResultNotStorable", why))


def _raised(body: Body, exception: BaseException) -> Outcome:
    try:
        return _judged(body, exception)
    except BaseException as error:  # noqa: BLE001 - an exception may fight whoever looks at it
        message = f"{class_path(type(exception))} was raised, and looking at it raised {class_path(type(error))}"
        return Outcome(Ending.FAILED, failure=system_failure("jobs.FailureNotDescribed", message))


def _judged(body: Body, exception: BaseException) -> Outcome:
    """Who fired decides, not the exception's type: a job's own TimeoutError or CancelledError is a failure."""
    match body.stop.reason:
        case StopReason.TIMEOUT:
            return _timed_out(body, exception)
        case StopReason.CANCEL:
            return Outcome(Ending.CANCELLED)
        case StopReason.INTERRUPT | StopReason.LEASE_LOST as reason:
            return Outcome(Ending.INTERRUPTED, reason=str(reason))
        case None:
            return _raised_by_itself(body, exception)
        case _:
            assert_never(body.stop.reason)


def _raised_by_itself(body: Body, exception: BaseException) -> Outcome:
    # Not isinstance(), which asks the exception for its __class__.
    kind = type(exception)
    if issubclass(kind, CancelJob):
        return Outcome(Ending.CANCELLED, reason=describe(exception).message[:200] or "cancelled by itself")
    if issubclass(kind, Snooze):
        assert isinstance(exception, Snooze)
        if body.claim.snoozes < MAX_SNOOZES:
            return Outcome(Ending.SNOOZED, retry_after_seconds=exception.seconds, reason="snoozed")
        message = f"snoozed {body.claim.snoozes} times: give up"
        return Outcome(Ending.FAILED, failure=system_failure("jobs.SnoozedTooOften", message))
    failure = describe(_without_our_frames(exception))
    try:
        retry = delay_before_retry(body.claim, body.definition, exception, body.rng)
    except BaseException as error:  # noqa: BLE001 - a policy that raises still records the failure
        why = describe(error)
        note = f"\n\nThe retry policy itself failed, so there is no retry: {why}"
        failure = replace(failure, traceback=clean_text(failure.traceback + note, TRACEBACK_BYTES))
        retry = None
    if retry is None:
        _log_last_failure(body.claim, failure, exception)
    return Outcome(Ending.FAILED, failure=failure, retry_after_seconds=retry)


def _log_last_failure(claim: Claim, failure: Failure, exception: BaseException) -> None:
    """Here, where the exception still is: so it reaches Sentry and mail_admins with its traceback."""
    if is_cut(failure.message) or is_cut(failure.traceback):
        # Formatting megabytes would hold up the slot, and whoever reads the log.
        exception = JobsError(f"{failure.exception_class}: {failure.message}").with_traceback(_traceback_of(exception))
    try:
        logger.error("%s failed, and is not tried again: %s", claim, failure, exc_info=exception)
    except BaseException:  # noqa: BLE001 - a handler of the project's, which meets an exception of the job's
        logger.info("%s: its last failure could not be logged", claim)


def _without_our_frames(exception: BaseException) -> BaseException:
    """The traceback begins where the job's own code does."""
    # By way of the base class: the exception's own class may give, or do, anything here.
    traceback = _traceback_of(exception)
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__") in _OUR_MODULES:
        traceback = traceback.tb_next
    if traceback is not None:
        BaseException.with_traceback(exception, traceback)
    return exception


def _traceback_of(exception: BaseException) -> TracebackType | None:
    found: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(exception)
    return found


def _timed_out(body: Body, exception: BaseException | None) -> Outcome:
    failure = timeout_failure(body.claim)
    if exception is not None:
        failure = replace(failure, traceback=describe(_without_our_frames(exception)).traceback)
    return Outcome(Ending.TIMED_OUT, failure=failure, reason="timed out")


def timeout_failure(claim: Claim) -> Failure:
    return system_failure("jobs.TimedOut", f"{claim.task} ran longer than its timeout of {claim.timeout_seconds:g} s")


def delay_before_retry(
    claim: Claim, definition: TaskDefinition, exception: BaseException, rng: random.Random
) -> float | None:
    """Numbers from the job's row, as submitted; exception classes and the task's own callable from the code."""
    return retry_after(
        definition.options.retry,
        exception,
        failures=claim.failures,
        max_retries=claim.max_retries,
        base_seconds=claim.retry_base_seconds,
        max_seconds=claim.retry_max_seconds,
        jitter=claim.retry_jitter,
        rng=rng,
    )


def _cleaned(outcome: Outcome, left_open: str) -> Outcome:
    """A job that left a transaction open did not do what it seems to have done."""
    if not left_open or outcome.ending is not Ending.COMPLETED:
        return outcome
    return Outcome(Ending.FAILED, failure=system_failure("jobs.TransactionLeftOpen", left_open))


def run_claim(claim: Claim, context: Context, stop: StopSignal) -> Outcome:
    """The door for child processes: look the task up, then run it."""
    log_capture.install()
    definition = registry.find(claim.task)
    if definition is None:
        return Outcome(Ending.TASK_NOT_FOUND, reason="the child process does not know the task")
    return run(Body(claim, definition, context, stop, random.Random()))
