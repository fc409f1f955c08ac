"""What `runscheduler` says: what it will do, what a stop waits for, and what a drain leaves to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connections

from jobs.domain.execution import Execution
from jobs.engine.options import EngineOptions

NAMED_JOBS = 5
SLOTS_OPTION = {Execution.THREAD: "--threads", Execution.ASYNC: "--async", Execution.PROCESS: "--processes"}


def introduction(options: EngineOptions) -> str:
    what = {"both": "promotes, runs and reclaims", "scheduler": "promotes and reclaims", "worker": "runs"}[options.role]
    queues = ", ".join(name if most is None else f"{name} (at most {most})" for name, most in options.queues.items())
    slots = ", ".join(f"{count} {execution}" for execution, count in options.slots.items() if options.claims and count)
    parts = [
        f"worker {options.name} {what} jobs of queues {queues}",
        f"slots: {slots}" if slots else "no slots",
        f"database {options.alias} ({connections[options.alias].display_name})",
        f"lease {options.lease:g} s, poll {options.poll:g} s, grace {options.grace:g} s",
    ]
    if options.claims and not options.slots.get(Execution.PROCESS):
        parts.append("without --processes a job that was lost once waits for another worker")
    return "; ".join(parts)


def counted_jobs(job_ids: Sequence[int]) -> str:
    """How many, and which: as many as one can look at."""
    named = ", ".join(f"#{job_id}" for job_id in job_ids[:NAMED_JOBS])
    more = ", ..." if len(job_ids) > NAMED_JOBS else ""
    return f"{len(job_ids)} {'job' if len(job_ids) == 1 else 'jobs'}: {named}{more}"


def left_behind(role: str, no_slots: Mapping[Execution, int], unknown: Mapping[str, int]) -> str:
    """Empty when a drain leaves nothing."""
    parts = []
    for execution, count in no_slots.items():
        why = "role scheduler runs none" if role == "scheduler" else f"no slots here: {SLOTS_OPTION[execution]} 1"
        parts.append(f"{count} {execution} ({why})")
    parts += [
        f"{count} of task {task} (not known here: is its app in INSTALLED_APPS?)" for task, count in unknown.items()
    ]
    total = sum(no_slots.values()) + sum(unknown.values())
    return (
        f"drained, but {total} due {'job' if total == 1 else 'jobs'} left behind: {', '.join(parts)}" if parts else ""
    )
