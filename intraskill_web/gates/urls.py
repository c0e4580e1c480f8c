from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.gates import views

app_name = "gates"
urlpatterns: list[URLPattern] = [
    path("gates/", views.gate_list, name="list"),
    path("experiments/<slug:name>/rounds/<int:number>/gate/", views.gate_detail, name="detail"),
]
