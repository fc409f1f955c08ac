"""Django signals for moves of jobs, sent in the process that made the move, after its commit.

Each is sent with `job_id`, `task`, `old`, `new`, `attempt`, `at` and `actor`; the sender is `Job`. A receiver
that raises is logged and changes nothing.
"""

from __future__ import annotations

import logging

from django.dispatch import Signal

from jobs.domain.move import Move, listeners
from jobs.domain.status import TERMINAL, Status
from jobs.models import Job

logger = logging.getLogger(__name__)

job_enqueued = Signal()
job_started = Signal()
job_finished = Signal()
job_retrying = Signal()


def connect() -> None:
    """Forward this process's moves. Safe twice."""
    listeners.remove(_forward)
    listeners.add(_forward, wanted=_anybody_listens)


def _anybody_listens() -> bool:
    return any(signal.receivers for signal in (job_enqueued, job_started, job_finished, job_retrying))


def _signal_of(move: Move) -> Signal | None:
    if move.old is None:
        return job_enqueued
    if move.new is Status.RUNNING:
        return job_started
    if move.new in TERMINAL:
        return job_finished
    return job_retrying if move.new is Status.RETRY_WAIT else None


def _forward(move: Move) -> None:
    signal = _signal_of(move)
    if signal is None or not signal.receivers:
        return
    responses = signal.send_robust(
        sender=Job,
        job_id=move.job_id,
        task=move.task,
        old=move.old,
        new=move.new,
        attempt=move.attempt,
        at=move.at,
        actor=move.actor,
    )
    for receiver, response in responses:
        if isinstance(response, Exception):
            logger.error(
                "receiver %r failed on job %s (%s to %s)", receiver, move.job_id, move.old, move.new, exc_info=response
            )
