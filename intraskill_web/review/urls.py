from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.review import views

app_name = "review"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/review/", views.add, name="add"),
    path(
        "experiments/<slug:name>/skills/<int:number>/override/",
        views.override_form,
        name="override_form",
    ),
    path("experiments/<slug:name>/overrides/<int:pk>/", views.override_detail, name="override"),
    path(
        "experiments/<slug:name>/overrides/<int:pk>/bank.json",
        views.override_bank,
        name="override_bank",
    ),
]
