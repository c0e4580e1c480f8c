from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.skills import views

app_name = "skills"
urlpatterns: list[URLPattern] = [
    path("skills/", views.version_list, name="list"),
    path("experiments/<slug:name>/skills/<int:number>/", views.version_detail, name="version"),
]
