"""The jobs in Django's admin: lists of jobs, attempts and schedules, their pages, a form to submit, and verbs."""

from __future__ import annotations

from django.contrib import admin

from jobs.admin.attempt_list import AttemptAdmin
from jobs.admin.job import JobAdmin
from jobs.admin.schedule import ScheduleAdmin
from jobs.models import Attempt, Job, Schedule

__all__ = ["AttemptAdmin", "JobAdmin", "ScheduleAdmin"]

admin.site.register(Job, JobAdmin)
admin.site.register(Attempt, AttemptAdmin)
admin.site.register(Schedule, ScheduleAdmin)
