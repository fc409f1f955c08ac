"""How a run ended when the body is not the one to say."""

from __future__ import annotations

import signal
from dataclasses import replace

from jobs.domain.claim import Claim
from jobs.domain.exhaustive import assert_never
from jobs.domain.failure import clean_text, system_failure
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.stop import StopReason
from jobs.engine.body import timeout_failure

NOT_PLAIN = "jobs.ResultNotStorable"


def stopped(claim: Claim, reason: StopReason | None, tail: str = "") -> Outcome:
    """A body that we stopped: whoever fired decides what that is called. `tail` ends the line for people."""
    match reason:
        case StopReason.TIMEOUT:
            return Outcome(Ending.TIMED_OUT, failure=timeout_failure(claim), reason=f"timed out{tail}")
        case StopReason.CANCEL:
            return Outcome(Ending.CANCELLED, reason=f"cancelled while running{tail}")
        case StopReason.LEASE_LOST:
            return Outcome(Ending.INTERRUPTED, reason=f"the lease is lost{tail}")
        case StopReason.INTERRUPT | None:
            return Outcome(Ending.INTERRUPTED, reason=f"the worker stops{tail}")
        case _:
            assert_never(reason)


def forestalled(reason: StopReason) -> Outcome:
    """A body that was asked to stop before it began."""
    if reason is StopReason.CANCEL:
        return Outcome(Ending.CANCELLED, reason="cancelled before it began")
    return Outcome(Ending.UNSTARTED, reason=f"asked to stop before it began ({reason})")


def settled(claim: Claim, outcome: Outcome, reason: StopReason | None) -> Outcome:
    """What the body's own outcome counts for once the run was asked to stop.

    A success beats a cancel and an interruption, not a timeout. An outcome that already names the request stays,
    with the traceback of where the body was.
    """
    if reason is None or (outcome.ending is Ending.COMPLETED and reason is not StopReason.TIMEOUT):
        return outcome
    verdict = stopped(claim, reason)
    return outcome if outcome.ending is verdict.ending else replace(verdict, log=outcome.log)


def died(pid: int, exit_code: int) -> Outcome:
    """A child that ended unasked in the middle of a body. `exit_code` is negative for a signal."""
    return Outcome(Ending.LOST, reason=f"child process {pid} died: exit code {exit_code}{_signal_name(exit_code)}")


def not_plain(claim: Claim, why: BaseException) -> Outcome:
    """An outcome that is not plain data, so that it could not leave the child."""
    message = f"job {claim.job_id}: its outcome cannot leave the child process ({type(why).__name__}: {why})"
    return Outcome(Ending.FAILED, failure=system_failure(NOT_PLAIN, message), reason=clean_text(message, 200))


def _signal_name(exit_code: int) -> str:
    try:
        return f" ({signal.Signals(-exit_code).name})"
    except ValueError:
        return ""
