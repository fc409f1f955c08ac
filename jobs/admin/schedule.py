"""Schedules in the admin: who may edit which of them, and the buttons, each with a permission of its own."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import connections, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from jobs.admin.call_text import pretty
from jobs.admin.schedule_form import ScheduleForm
from jobs.admin.schedule_list import ScheduleList, state_badge
from jobs.admin.schedule_page import schedule_page
from jobs.admin.schedule_verbs import VERBS, Refused, ScheduleVerb
from jobs.conf import jobs_settings
from jobs.domain.errors import ScheduleNotFound
from jobs.domain.recurrence import Cron
from jobs.models import Schedule

TIMES = ("expression", "timezone", "interval_seconds", "anchor_at", "start_at", "end_at", "jitter_seconds")
POLICY = ("overlap", "catch_up", "catch_up_cap")


class ScheduleAdmin(ScheduleList):
    form = ScheduleForm
    change_form_template = "admin/jobs/schedule.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.verb_view)
        own = [
            path(f"<int:schedule_id>/{verb.name}/", view, {"verb": verb}, name=f"jobs_schedule_{verb.name}")
            for verb in VERBS.values()
        ]
        return own + super().get_urls()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.add_schedule")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What the code declares is changed in the code."""
        return request.user.has_perm("jobs.change_schedule") and not (obj is not None and obj.declared)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What the code declares would come back."""
        comes_back = obj is not None and obj.declared and not obj.retired
        return request.user.has_perm("jobs.delete_schedule") and not comes_back

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row: Any = super().get_object(request, object_id, from_field)
        if row is not None and request.method == "POST" and connections[row._state.db].in_atomic_block:
            # As it is when the form is saved: a pause that somebody has just committed must not be undone.
            return self.get_queryset(request).select_for_update().filter(pk=row.pk).first()
        return row

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        may_edit = self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)
        work = ("args", "kwargs", "options") if may_edit else ("arguments_text", "options_text")
        return (
            (None, {"fields": ("name", "task", "factory", *work)}),
            (_("When"), {"fields": TIMES}),
            (_("When it cannot keep up"), {"fields": POLICY}),
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        with transaction.atomic(using=jobs_settings().DATABASE):
            return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with transaction.atomic(using=jobs_settings().DATABASE):
            return super().delete_view(request, object_id, extra_context)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Its occurrences may be many thousands: they are not listed."""
        return [str(one) for one in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.save(using=jobs_settings().DATABASE)
        rule = obj.rule
        if isinstance(rule, Cron) and rule.hint() and set(TIMES) & set(form.changed_data):
            self.message_user(request, rule.hint(), messages.WARNING)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = context.get("original")
        if row is not None and request.method == "POST":
            row = self.get_queryset(request).filter(pk=row.pk).first()  # not as the refused form would have it
        if row is not None:
            page = schedule_page(row, timezone.now())
            context |= page
            context |= {
                "badge": state_badge(page["state"]),
                "may_pause": request.user.has_perm("jobs.pause_schedule"),
                "may_run": request.user.has_perm("jobs.run_schedule"),
                "may_view_jobs": request.user.has_perm("jobs.view_job"),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def verb_view(self, request: HttpRequest, schedule_id: int, verb: ScheduleVerb) -> HttpResponse:
        self.require(request, request.user.has_perm(verb.permission))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.get_queryset(request).filter(pk=schedule_id).first() if schedule_id < 2**63 else None
        if row is None:
            raise Http404
        try:
            done = verb.run(row, request.POST, request.user.get_username())
        except (Refused, ScheduleNotFound) as refused:
            self.message_user(request, _("Nothing was done: %s") % refused, messages.ERROR)
        else:
            self.log_change(request, row, done.logged)
            self.message_user(request, done.message, messages.SUCCESS)
        return self._back(request, row)

    def _back(self, request: HttpRequest, row: Schedule) -> HttpResponseRedirect:
        """To its page; who may act but not look goes to where they may be."""
        if self.has_view_permission(request):
            address = reverse("admin:jobs_schedule_change", args=[row.pk], current_app=self.admin_site.name)
        else:
            address = reverse("admin:index", current_app=self.admin_site.name)
        return HttpResponseRedirect(address)

    @admin.display(description=_("arguments"))
    def arguments_text(self, row: Schedule) -> SafeString:
        return format_html('<pre class="jobs-text">{}</pre>', pretty(row.arguments))

    @admin.display(description=_("job options"))
    def options_text(self, row: Schedule) -> SafeString:
        return format_html('<pre class="jobs-text">{}</pre>', pretty(row.options))
