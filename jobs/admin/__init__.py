"""The jobs in Django's admin: two lists, a job's page, a form to submit, two verbs."""

from __future__ import annotations

from django.contrib import admin

from jobs.admin.attempt_list import AttemptAdmin
from jobs.admin.job import JobAdmin
from jobs.models import Attempt, Job

__all__ = ["AttemptAdmin", "JobAdmin"]

admin.site.register(Job, JobAdmin)
admin.site.register(Attempt, AttemptAdmin)
