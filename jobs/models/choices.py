"""The domain's enums as Django choices: one list of words for forms, filters and constraints."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from jobs.domain.execution import Execution
from jobs.domain.recurrence.catch_up import CatchUp
from jobs.domain.recurrence.overlap import Overlap
from jobs.domain.status import AttemptOutcome, Status

STATUS_CHOICES = [
    (Status.BLOCKED.value, _("Blocked")),
    (Status.SCHEDULED.value, _("Scheduled")),
    (Status.PENDING.value, _("Pending")),
    (Status.RUNNING.value, _("Running")),
    (Status.RETRY_WAIT.value, _("Waiting for retry")),
    (Status.COMPLETED.value, _("Completed")),
    (Status.FAILED.value, _("Failed")),
    (Status.TIMED_OUT.value, _("Timed out")),
    (Status.CANCELLED.value, _("Cancelled")),
]

OUTCOME_CHOICES = [
    (AttemptOutcome.RUNNING.value, _("Running")),
    (AttemptOutcome.COMPLETED.value, _("Completed")),
    (AttemptOutcome.FAILED.value, _("Failed")),
    (AttemptOutcome.TIMED_OUT.value, _("Timed out")),
    (AttemptOutcome.CANCELLED.value, _("Cancelled")),
    (AttemptOutcome.INTERRUPTED.value, _("Interrupted")),
    (AttemptOutcome.LOST.value, _("Lost")),
]

EXECUTION_CHOICES = [
    (Execution.ASYNC.value, _("Async")),
    (Execution.THREAD.value, _("Thread")),
    (Execution.PROCESS.value, _("Process")),
]

OVERLAP_CHOICES = [
    (Overlap.SKIP.value, _("Skip the new one")),
    (Overlap.ALLOW.value, _("Allow both")),
    (Overlap.QUEUE_ONE.value, _("Let one wait")),
    (Overlap.CANCEL_PREVIOUS.value, _("Cancel the earlier one")),
]

CATCH_UP_CHOICES = [
    (CatchUp.COALESCE.value, _("One job for all")),
    (CatchUp.SKIP.value, _("None")),
    (CatchUp.ALL.value, _("A job each")),
]

OCCURRENCE_CHOICES = [
    ("made", _("Job made")),
    ("skipped", _("Skipped")),
]
