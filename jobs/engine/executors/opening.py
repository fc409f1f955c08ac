"""From a claim to a body that may begin, for the executors that run bodies in this process."""

from __future__ import annotations

import random

from jobs.domain.context import Context
from jobs.domain.outcome import Ending, Outcome
from jobs.domain.registry import Registry
from jobs.engine.body import Body
from jobs.engine.executors.port import Listener
from jobs.engine.executors.run import Run

_rng = random.Random()


def opened(one: Run, registry: Registry, listener: Listener) -> Body | Outcome:
    """The body, which the listener has heard of as started, or how the run ends without it."""
    claim = one.claim
    definition = registry.find(claim.task)
    if definition is None:
        return Outcome(Ending.TASK_NOT_FOUND)
    refusal = listener.may_begin(claim) if one.stop.reason is None else Outcome(Ending.UNSTARTED)
    if refusal is not None:
        return refusal
    listener.started(claim)
    context = Context.of(claim, one.stop, lambda progress: listener.progressed(claim, progress))
    return Body(claim, definition, context, one.stop, _rng)
