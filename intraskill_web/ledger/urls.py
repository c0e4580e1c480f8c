from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.ledger import views

app_name = "ledger"
urlpatterns: list[URLPattern] = [
    path("ledger/", views.candidate_list, name="list"),
]
