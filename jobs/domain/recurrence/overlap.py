"""What to do with an occurrence while an earlier job of its schedule has not ended."""

from __future__ import annotations

import enum

from jobs.domain.exhaustive import assert_never


class Overlap(str, enum.Enum):
    SKIP = "skip"
    ALLOW = "allow"
    QUEUE_ONE = "queue_one"
    CANCEL_PREVIOUS = "cancel_previous"

    __str__ = str.__str__


class OverlapDecision(str, enum.Enum):
    MAKE = "make"
    SKIP = "skip"
    CANCEL_AND_MAKE = "cancel_and_make"

    __str__ = str.__str__


def judge_overlap(overlap: Overlap, *, waiting: int, begun: int) -> OverlapDecision:
    """One decision for all occurrences of one look, given the jobs of earlier looks that have not ended.

    `waiting`: those that never started. `begun`: those that run, or wait for a retry; waiting for a retry counts as
    running, since the work of that occurrence is not done. Occurrences of one look do not suppress each other.
    """
    match overlap:
        case Overlap.ALLOW:
            return OverlapDecision.MAKE
        case Overlap.SKIP:
            return OverlapDecision.SKIP if waiting or begun else OverlapDecision.MAKE
        case Overlap.QUEUE_ONE:
            return OverlapDecision.SKIP if waiting else OverlapDecision.MAKE
        case Overlap.CANCEL_PREVIOUS:
            return OverlapDecision.CANCEL_AND_MAKE if waiting or begun else OverlapDecision.MAKE
    assert_never(overlap)
