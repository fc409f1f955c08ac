"""Addresses of the sample project."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from config.demo import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("demo/orders/", views.orders, name="demo-orders"),
    path("favicon.ico", views.no_icon),
    path("demo/ping/", views.ping, name="demo-ping"),
]
