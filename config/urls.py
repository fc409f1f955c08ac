"""Addresses of the project: the admin, the sample project's pages, and the root, which leads to the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("config.demo.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
