"""Cancel and requeue on a person's word: what was done, in numbers and in the log of the admin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from django.contrib.admin.models import CHANGE, LogEntry
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.conf import jobs_settings
from jobs.domain.status import Status
from jobs.engine.hints import hint_cancel, hint_due
from jobs.models import Job
from jobs.store.cancel import cancel
from jobs.store.database import database
from jobs.store.requeue import requeue

MAX_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Done:
    changed: tuple[int, ...]
    unchanged: int
    message: str


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    """Also of its permission: `jobs.<name>_job`."""
    run: Callable[[Collection[int], str], Done]
    logged: str

    @property
    def permission(self) -> str:
        return f"jobs.{self.name}_job"


def _cancel(job_ids: Collection[int], actor: str) -> Done:
    db = database(jobs_settings().DATABASE)
    accepted = cancel(db, job_ids, actor=actor)
    asked = [job_id for job_id, status in accepted.items() if status is Status.RUNNING]
    for job_id in asked:
        hint_cancel(db, job_id)
    ended, left = len(accepted) - len(asked), len(job_ids) - len(accepted)
    return Done(
        tuple(accepted),
        left,
        _sentence(
            ended and ngettext("%d job was cancelled", "%d jobs were cancelled", ended) % ended,
            asked
            and ngettext("%d running job was asked to stop", "%d running jobs were asked to stop", len(asked))
            % len(asked),
            left and ngettext("%d had ended already", "%d had ended already", left) % left,
        ),
    )


def _requeue(job_ids: Collection[int], actor: str) -> Done:
    db = database(jobs_settings().DATABASE)
    requeued = requeue(db, job_ids, actor=actor)
    if requeued.moved:
        hint_due(db)
    moved, held = len(requeued.moved), len(requeued.key_held)
    left = len(job_ids) - moved - held
    keys = ", ".join(sorted(set(requeued.key_held.values())))
    return Done(
        tuple(requeued.moved),
        held + left,
        _sentence(
            moved
            and ngettext("%d job was put back into its queue", "%d jobs were put back into their queues", moved)
            % moved,
            held
            and ngettext(
                "%(held)d was left as it is, because another active job holds its unique key (%(keys)s)",
                "%(held)d were left as they are, because other active jobs hold their unique keys (%(keys)s)",
                held,
            )
            % {"held": held, "keys": keys if len(keys) <= 200 else f"{keys[:200]}…"},
            left
            and ngettext(
                "%d was left as it is: only a failed, timed out or cancelled job can be put back",
                "%d were left as they are: only failed, timed out and cancelled jobs can be put back",
                left,
            )
            % left,
        ),
    )


CANCEL = Verb("cancel", _cancel, "Cancelled.")
REQUEUE = Verb("requeue", _requeue, "Put back into the queue.")
VERBS = {verb.name: verb for verb in (CANCEL, REQUEUE)}


def carry_out(verb: Verb, job_ids: Collection[int], *, user_id: int, actor: str) -> Done:
    """Do it, and write one log entry for each job that changed."""
    done = verb.run(job_ids, actor)
    if done.changed:
        rows = Job.objects.using(jobs_settings().DATABASE).filter(pk__in=done.changed).only("pk", "task").order_by("pk")
        LogEntry.objects.log_actions(user_id, list(rows), CHANGE, change_message=verb.logged)
    return done


def _sentence(*parts: object) -> str:
    said: Iterable[str] = [str(part) for part in parts if part]
    return "; ".join(said) + "." if said else _("Nothing to do.")
