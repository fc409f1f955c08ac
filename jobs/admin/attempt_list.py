"""The list of attempts; each leads to its place on the job's page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from jobs.admin.call_text import short_name
from jobs.admin.condition import beside, no_sign_of_life, outcome, since, span
from jobs.admin.filters import AttemptExceptionFilter, OutcomeFilter
from jobs.admin.latest_attempt import IS_SILENT, exception_class
from jobs.admin.read_only import ReadOnlyAdmin
from jobs.models import Attempt


class AttemptAdmin(ReadOnlyAdmin):
    list_display = ("how", "run", "task", "when", "took", "worker")
    list_display_links = ("run",)
    list_filter = (OutcomeFilter, AttemptExceptionFilter)
    search_fields = ("job",)
    search_help_text = _("The number of a job.")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        columns = ("number", "worker_name", "outcome", "claimed_at", "started_at", "ended_at", "lease_until", "reason")
        whole: QuerySet[Attempt] = super().get_queryset(request)
        narrow = whole.select_related("job", "failure").only(*columns, "job__task", "failure__exception_class")
        rows: QuerySet[Attempt] = narrow.annotate(is_silent=IS_SILENT)
        return rows

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Not in the index, where they would stand before the jobs, whose list leads here."""
        return {} if request.user.has_perm("jobs.view_job") else super().get_model_perms(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip().removeprefix("#")
        if not term:
            return queryset, False
        known = term.isascii() and term.isdigit() and len(term) <= 18
        return queryset.filter(job_id=int(term)) if known else queryset.none(), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, self.has_view_permission(request))
        attempt: Any = self.get_object(request, unquote(object_id))
        if attempt is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        page = reverse("admin:jobs_job_change", args=[attempt.job_id], current_app=self.admin_site.name)
        return HttpResponseRedirect(f"{page}#attempt-{attempt.number}")

    @admin.display(description=_("outcome"))
    def how(self, attempt: Any) -> SafeString:
        return beside(outcome(attempt), no_sign_of_life() if attempt.is_silent else _why(attempt))

    @admin.display(description=_("attempt"))
    def run(self, attempt: Attempt) -> str:
        return f"#{attempt.job_id} / {attempt.number}"

    @admin.display(description=_("task"))
    def task(self, attempt: Attempt) -> SafeString:
        return short_name(attempt.job.task)

    @admin.display(description=_("started"))
    def when(self, attempt: Attempt) -> SafeString:
        return since("", attempt.started_at or attempt.claimed_at, timezone.now())

    @admin.display(description=_("took"))
    def took(self, attempt: Attempt) -> str:
        if attempt.started_at is None or attempt.ended_at is None:
            return ""
        return span((attempt.ended_at - attempt.started_at).total_seconds())

    @admin.display(description=_("worker"))
    def worker(self, attempt: Attempt) -> SafeString:
        return format_html('<span dir="auto">{}</span>', attempt.worker_name)


def _why(attempt: Attempt) -> SafeString | str:
    failed_with = exception_class(attempt)
    return short_name(failed_with) if failed_with else attempt.reason
