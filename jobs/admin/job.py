"""Jobs in the admin: the list, the page of a job, the submit form, and the verbs, each with a permission of its own."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.admin.job_detail import job_page
from jobs.admin.job_list import JobList
from jobs.admin.missing_workers import missing_workers
from jobs.admin.submit import SubmitForm, offered_tasks
from jobs.admin.verbs import MAX_AT_ONCE, VERBS, Done, Verb, carry_out
from jobs.domain.errors import JobNotFound
from jobs.models import Job
from jobs.submission import enqueue_many


class JobAdmin(JobList):
    actions = ("cancel_selected", "requeue_selected")

    def get_urls(self) -> list[URLPattern]:
        # Before Django's own, which take whatever stands in the place of an id.
        own = [path("submit/", self.admin_site.admin_view(self.submit_view), name="jobs_job_submit")]
        for verb in VERBS.values():
            view = self.admin_site.admin_view(self.verb_view)
            own.append(path(f"<int:job_id>/{verb.name}/", view, {"verb": verb}, name=f"jobs_job_{verb.name}"))
        return own + super().get_urls()

    def has_submit_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.submit_job")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.cancel_job")

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("jobs.requeue_job")

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """For the index: its link "Add" leads to the submit form."""
        return {**super().get_model_perms(request), "add": self.has_submit_permission(request)}

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self.require(request, self.has_submit_permission(request) and request.method in ("GET", "HEAD"))
        return HttpResponseRedirect(reverse("admin:jobs_job_submit", current_app=self.admin_site.name))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method == "POST":
            for action in request.POST.getlist("action"):
                verb = VERBS.get(action.removesuffix("_selected"))
                # Django passes over an action that the user may not take, and says nothing.
                self.require(request, verb is None or request.user.has_perm(verb.permission))
        extra = {
            "may_submit": self.has_submit_permission(request),
            "may_view_attempts": request.user.has_perm("jobs.view_attempt"),
            "missing": missing_workers(),
        }
        return super().changelist_view(request, extra)

    @admin.action(description=gettext_lazy("Cancel selected jobs"), permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._carry_out_selected(request, VERBS["cancel"])

    @admin.action(description=gettext_lazy("Put selected jobs back into their queues"), permissions=["requeue"])
    def requeue_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        self._carry_out_selected(request, VERBS["requeue"])

    def _carry_out_selected(self, request: HttpRequest, verb: Verb) -> None:
        """The ticked jobs, also those that meanwhile left the filtered list; never "everything that matches"."""
        ticked = self.get_queryset(request).filter(pk__in=request.POST.getlist(ACTION_CHECKBOX_NAME))
        job_ids = list(ticked.order_by("pk").values_list("pk", flat=True)[: MAX_AT_ONCE + 1])
        if len(job_ids) > MAX_AT_ONCE:
            self.message_user(request, _("At most %d jobs at once: nothing was done.") % MAX_AT_ONCE, messages.ERROR)
            return
        self._tell(request, self._carry_out(request, verb, job_ids))

    def verb_view(self, request: HttpRequest, job_id: int, verb: Verb) -> HttpResponse:
        self.require(request, request.user.has_perm(verb.permission))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if job_id >= 2**63 or not self.get_queryset(request).filter(pk=job_id).exists():
            raise Http404
        self._tell(request, self._carry_out(request, verb, [job_id]))
        return self._back(request, job_id)

    def submit_view(self, request: HttpRequest) -> HttpResponse:
        self.require(request, self.has_submit_permission(request))
        if request.method == "POST":
            form = SubmitForm(request.POST)
            if form.is_valid():
                row = enqueue_many([form.call], actor=request.user.get_username())[0]
                self.log_addition(request, row, "Submitted.")
                self.message_user(
                    request,
                    _("Job #%(id)d was submitted: %(task)s.") % {"id": row.pk, "task": row.task},
                    messages.SUCCESS,
                )
                return self._back(request, row.pk)
        else:
            form = SubmitForm(initial={"task": request.GET.get("task", "")})
        return self._page(
            request, "admin/jobs/submit.html", {"title": _("Submit a job"), "form": form, "tasks": offered_tasks()}
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Not Django's form: there is nothing here that could write a column."""
        self.require(request, self.has_view_permission(request))
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        job: Any = self.get_object(request, unquote(object_id))
        try:
            page = job_page(job) if job is not None else None
        except JobNotFound:
            page = None
        if page is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        page["can_end"] = page["can_end"] and self.has_cancel_permission(request)
        page["can_go_back"] = page["can_go_back"] and self.has_requeue_permission(request)
        return self._page(request, "admin/jobs/job.html", {"title": _("Job #%d") % job.pk, **page})

    def _carry_out(self, request: HttpRequest, verb: Verb, job_ids: list[int]) -> Done:
        assert request.user.pk is not None
        return carry_out(verb, job_ids, user_id=request.user.pk, actor=request.user.get_username())

    def _tell(self, request: HttpRequest, done: Done) -> None:
        self.message_user(request, done.message, messages.WARNING if done.unchanged else messages.SUCCESS)

    def _back(self, request: HttpRequest, job_id: int) -> HttpResponseRedirect:
        """To the job's page; who may submit or cancel but not look goes to where they may be."""
        if self.has_view_permission(request):
            address = reverse("admin:jobs_job_change", args=[job_id], current_app=self.admin_site.name)
        elif self.has_submit_permission(request):
            address = reverse("admin:jobs_job_submit", current_app=self.admin_site.name)
        else:
            address = reverse("admin:index", current_app=self.admin_site.name)
        return HttpResponseRedirect(address)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        request.current_app = self.admin_site.name
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, {**shared, "may_view": self.has_view_permission(request), **context})
