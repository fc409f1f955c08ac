from __future__ import annotations

import pytest

from jobs.domain.recurrence.overlap import Overlap, OverlapDecision, judge_overlap

MAKE, SKIP, CANCEL_AND_MAKE = OverlapDecision


@pytest.mark.parametrize("overlap", list(Overlap))
def test_without_an_earlier_job_every_policy_makes_one(overlap: Overlap) -> None:
    assert judge_overlap(overlap, waiting=0, begun=0) is MAKE


@pytest.mark.parametrize(
    ("overlap", "while_waiting", "while_begun", "while_both"),
    [
        (Overlap.ALLOW, MAKE, MAKE, MAKE),
        (Overlap.SKIP, SKIP, SKIP, SKIP),
        (Overlap.QUEUE_ONE, SKIP, MAKE, SKIP),
        (Overlap.CANCEL_PREVIOUS, CANCEL_AND_MAKE, CANCEL_AND_MAKE, CANCEL_AND_MAKE),
    ],
)
def test_with_an_earlier_job_the_policy_decides(
    overlap: Overlap, while_waiting: OverlapDecision, while_begun: OverlapDecision, while_both: OverlapDecision
) -> None:
    assert judge_overlap(overlap, waiting=1, begun=0) is while_waiting
    assert judge_overlap(overlap, waiting=0, begun=1) is while_begun
    assert judge_overlap(overlap, waiting=1, begun=2) is while_both
