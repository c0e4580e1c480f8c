from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.monitoring import views

app_name = "monitoring"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/zoom/", views.zoom, name="zoom"),
    path("experiments/<slug:name>/series/", views.series, name="series"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/panels/<slug:key>/",
        views.panel_page,
        name="panel",
    ),
]
