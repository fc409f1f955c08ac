"""The domain's enums as Django choices: one list of words for forms, filters and constraints."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from jobs.domain.execution import Execution
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
