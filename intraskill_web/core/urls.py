from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.core import views

app_name = "core"
urlpatterns: list[URLPattern] = [
    path("help/", views.all_definitions, name="definitions"),
    path("help/<slug:key>/", views.one_definition, name="definition"),
]
