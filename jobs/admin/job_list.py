"""The list of jobs: its columns, its order, its search."""

from __future__ import annotations

import re
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from jobs.admin.call_text import PREVIEW, preview, short_name
from jobs.admin.condition import condition_and_why, moment
from jobs.admin.filters import ExceptionFilter, QueueFilter, StatusFilter, TaskFilter
from jobs.admin.latest_attempt import latest_attempts
from jobs.admin.read_only import FixedOrderList, ReadOnlyAdmin
from jobs.domain.registry import registry
from jobs.domain.status import TERMINAL
from jobs.models import Job, Payload

_NUMBER = re.compile(r"#?([0-9]{1,18})")


class JobsWithAttempts(FixedOrderList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list: Any = list(self.result_list)
        latest = latest_attempts(self.result_list, self.queryset.db)
        for job in self.result_list:
            job.latest_attempt = latest.get(job.pk)


class JobList(ReadOnlyAdmin):
    list_display = ("condition", "number", "call", "when", "tries", "lane")
    list_display_links = ("number",)
    list_filter = (StatusFilter, QueueFilter, TaskFilter, ExceptionFilter)
    search_fields = ("id",)
    search_help_text = _("The number of a job, or the name of a task: the whole, or its last part.")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        stored = Payload.objects.filter(job=OuterRef("pk")).values(
            head=Substr(Cast("arguments", TextField()), 1, PREVIEW)
        )
        # Only the first characters leave the database: arguments may be large, and there are fifty of them on a page.
        rows: QuerySet[Job] = super().get_queryset(request).annotate(stored_arguments=Subquery(stored))
        return rows

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Ended jobs have an index by their end. Whatever waits or runs is few, or new.
        return ("-ended_at", "-id") if request.GET.get("status") in TERMINAL else ("-id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        number = _NUMBER.fullmatch(term)
        if number:
            return queryset.filter(pk=int(number[1])), False
        # As the list spells them. Compared here, because the database has no index for parts of names.
        spelt = [name for name in registry.names() if name.rpartition(".")[2] == term]
        return queryset.filter(task__in=[term, *spelt]), False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return JobsWithAttempts

    @admin.display(description=_("status"))
    def condition(self, job: Any) -> SafeString:
        return condition_and_why(job, job.latest_attempt)

    @admin.display(description=_("job"))
    def number(self, job: Job) -> str:
        return f"#{job.pk}"

    @admin.display(description=_("call"))
    def call(self, job: Any) -> SafeString:
        shown = preview(job.stored_arguments)
        return format_html('{} <span class="jobs-arguments" dir="auto">({})</span>', short_name(job.task), shown)

    @admin.display(description=_("queue / priority"))
    def lane(self, job: Job) -> str:
        return f"{job.queue} / {job.priority}"

    @admin.display(description=_("when"))
    def when(self, job: Job) -> SafeString:
        return moment(job, timezone.now())

    @admin.display(description=_("attempts"))
    def tries(self, job: Job) -> int:
        return job.attempts
