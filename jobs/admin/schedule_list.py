"""The list of schedules: its columns, its search."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from jobs.admin.call_text import short_name
from jobs.admin.condition import badge, beside, since
from jobs.admin.missing_workers import missing_workers
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Schedule
from jobs.schedule_words import State, by_two_clocks, state_of


def state_badge(state: State) -> SafeString:
    return badge(state.name, str(capfirst(state.label)))


class ScheduleList(ReadOnlyAdmin):
    list_display = ("label", "state", "rule_words", "next", "last", "work")
    list_display_links = ("label",)
    search_fields = ("name", "task")
    search_help_text = _("A part of the name of a schedule or of its task.")
    ordering = ("name",)
    actions = None
    change_list_template = "admin/jobs/schedule_list.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"missing": missing_workers(), **(extra_context or {})})

    @admin.display(description=_("name"))
    def label(self, row: Schedule) -> SafeString:
        return format_html('<span dir="auto">{}</span>', row.name)

    @admin.display(description=_("rule"))
    def rule_words(self, row: Schedule) -> str:
        return row.describe()

    @admin.display(description=_("task"))
    def work(self, row: Schedule) -> SafeString:
        return short_name(row.task)

    @admin.display(description=_("next"))
    def next(self, row: Schedule) -> SafeString:
        return _when(row, row.next_run_at)

    @admin.display(description=_("last"))
    def last(self, row: Schedule) -> SafeString:
        return _when(row, row.last_occurrence_at)

    @admin.display(description=_("state"))
    def state(self, row: Schedule) -> SafeString:
        state = state_of(row, timezone.now())
        return beside(state_badge(state), state.detail)


def _when(row: Schedule, at: datetime | None) -> SafeString:
    text = by_two_clocks(row, at, timezone.get_current_timezone())
    return beside(since("", at, timezone.now()), text)
