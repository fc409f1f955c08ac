"""What a load came to: a line while it runs, a table at its end."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count
from django.db.models.functions import Now

from config.demo import tasks
from jobs import Status
from jobs.models import Attempt, Job, Worker

HEARD_WITHIN = timedelta(seconds=30)
_WAITING = (Status.BLOCKED, Status.SCHEDULED, Status.PENDING)
_HEADINGS = ("task", "jobs", "attempts", "completed", "failed", "median run", "slowest run")


def counts(job_ids: Sequence[int] | None = None) -> Counter[str]:
    """Jobs by status; of all jobs without `job_ids`."""
    jobs = Job.objects.all() if job_ids is None else Job.objects.filter(pk__in=job_ids)
    return Counter(dict(jobs.order_by().values_list("status").annotate(Count("pk"))))


def counted(many: int, what: str) -> str:
    return f"{many} {what}{'s' * (many != 1)}"


def unfinished(by_status: Counter[str]) -> int:
    return by_status[Status.RUNNING] + by_status[Status.RETRY_WAIT] + sum(by_status[status] for status in _WAITING)


def one_line(by_status: Counter[str], job_ids: Sequence[int] | None = None) -> str:
    """The counts of these jobs, and how far those are that run."""
    parts = {
        "running": by_status[Status.RUNNING],
        "waiting": sum(by_status[status] for status in _WAITING),
        "to be retried": by_status[Status.RETRY_WAIT],
        "failed": by_status[Status.FAILED] + by_status[Status.TIMED_OUT],
        "cancelled": by_status[Status.CANCELLED],
    }
    done = f"{by_status.total() - unfinished(by_status)} of {by_status.total()} jobs done"
    return ", ".join([done, *(f"{many} {what}" for what, many in parts.items() if many), *_progress(job_ids)])


def table(job_ids: Sequence[int]) -> list[str]:
    """A heading and one line per task: jobs by how they ended, attempts, and seconds of the attempts."""
    ended: defaultdict[str, Counter[str]] = defaultdict(Counter)
    runs: defaultdict[str, list[float]] = defaultdict(list)
    attempts: Counter[str] = Counter()
    for job in Job.objects.filter(pk__in=job_ids):
        ended[job.task][job.status] += 1
        attempts[job.task] += job.attempts
    for run in Attempt.objects.filter(job__in=job_ids).select_related("job"):
        if run.started_at and run.ended_at:
            runs[run.job.task].append(max(0.0, (run.ended_at - run.started_at).total_seconds()))
    rows = [_HEADINGS]
    for task in sorted(ended):
        row = (
            _short(task),
            str(ended[task].total()),
            str(attempts[task]),
            str(ended[task][Status.COMPLETED]),
            str(ended[task].total() - ended[task][Status.COMPLETED] - unfinished(ended[task])),
            f"{statistics.median(runs[task]):.3f} s" if runs[task] else "-",
            f"{max(runs[task]):.3f} s" if runs[task] else "-",
        )
        rows.append(row)
    return _aligned(rows)


def _progress(job_ids: Sequence[int] | None) -> list[str]:
    """How far those of the running jobs are that know it. What a killed process left says nothing any more."""
    running = Attempt.objects.filter(outcome="running", progress_done__isnull=False, progress_total__gt=0)
    running = running.filter(worker_id__in=Worker.objects.filter(seen_at__gte=Now() - HEARD_WITHIN).values("pk"))
    if job_ids is not None:
        running = running.filter(job__in=job_ids)
    seen = running.order_by("pk").values_list("job__task", "progress_done", "progress_total")[:3]
    return [f"{_short(task)} {100 * done / total:.0f} %" for task, done, total in seen if done and total]


def _short(task: str) -> str:
    return task.removeprefix(f"{tasks.__name__}.")


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
