"""What the lists can be narrowed to; the choices come from the code, the settings and an index, never from DISTINCT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.conf import jobs_settings
from jobs.domain.registry import registry
from jobs.domain.status import Status
from jobs.models import Failure
from jobs.models.choices import OUTCOME_CHOICES, STATUS_CHOICES
from jobs.store.browse import exception_classes
from jobs.store.database import database

OFFERED_CLASSES = 50


class ExactFilter(admin.SimpleListFilter):
    """One exact value. A value that is not offered (a task that is gone, a rarer class) filters as well."""

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        value = self.value()
        if not value:
            return None
        # PostgreSQL refuses NUL even in a question.
        return queryset.none() if "\0" in value else self.narrowed(queryset, value)

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        rows: QuerySet[Any] = queryset.filter(**{str(self.parameter_name): value})
        return rows


class PickFilter(ExactFilter):
    """Offered as one select instead of a link for each value, of which there may be hundreds."""

    template = "admin/jobs/pick_filter.html"

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        given = changelist.filter_params.items()
        self.others = [(name, one) for name, values in given if name != self.parameter_name for one in values]
        offered = [str(value) for value, _name in self.lookup_choices]
        chosen = self.value() or ""
        for value in [*offered, *([chosen] if chosen not in ("", *offered) else [])]:
            yield {"value": value, "selected": value == chosen}


class StatusFilter(ExactFilter):
    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, Any]]:
        # No job is born blocked yet. The address still filters by it.
        return [(value, word) for value, word in STATUS_CHOICES if value != Status.BLOCKED]


class QueueFilter(ExactFilter):
    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, Any]]:
        return [(queue, queue) for queue in jobs_settings().QUEUES]


class TaskFilter(PickFilter):
    title = _("task")
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, Any]]:
        return [(name, name) for name in registry.names()]


class ExceptionFilter(PickFilter):
    """Jobs with a failed attempt of that class, the last one or an earlier one."""

    title = _("exception class")
    parameter_name = "exception"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, Any]]:
        names = exception_classes(database(jobs_settings().DATABASE), limit=OFFERED_CLASSES)
        return [(name, name) for name in names]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        failures = Failure.objects.using(queryset.db).filter(exception_class=value)
        rows: QuerySet[Any] = queryset.filter(pk__in=failures.values("job"))
        return rows


class AttemptExceptionFilter(ExceptionFilter):
    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        rows: QuerySet[Any] = queryset.filter(failure__exception_class=value)
        return rows


class OutcomeFilter(ExactFilter):
    title = _("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, Any]]:
        return OUTCOME_CHOICES
