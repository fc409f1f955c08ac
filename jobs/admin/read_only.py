"""A list over the jobs' database that nobody can write through, and that never counts or sorts without a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property

from jobs.conf import jobs_settings

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _Paginator, _ModelAdmin = Paginator, admin.ModelAdmin

COUNTED = 10_000


class BoundedPaginator(_Paginator):
    """Counts up to a bound. An estimate will not do: the admin loads the whole table when it hears a small number."""

    @cached_property
    def _counted(self) -> int:
        # Still ordered: PostgreSQL then walks the list's own index and stops, instead of gathering every match first.
        rows: Any = self.object_list
        counted: int = rows.values("pk")[: COUNTED + 1].count()
        return counted

    @property
    def count(self) -> int:
        return min(self._counted, COUNTED)

    @property
    def is_cut(self) -> bool:
        """Whether there are more than it counted."""
        return self._counted > COUNTED


class FixedOrderList(ChangeList):
    """No sorting by column: most columns have no index."""

    def get_ordering_field(self, field_name: Any) -> None:
        return None


class ReadOnlyAdmin(_ModelAdmin):
    list_per_page = 50
    list_max_show_all = 0
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    actions_on_bottom = False
    change_list_template = "admin/jobs/list.html"

    class Media:
        css = {"all": ["jobs/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).using(jobs_settings().DATABASE)
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return FixedOrderList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def require(self, request: HttpRequest, allowed: bool) -> None:
        """`admin_view` lets in every member of the staff. Raises PermissionDenied."""
        if not allowed:
            raise PermissionDenied

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(request, {"title": title, **(extra_context or {})})
