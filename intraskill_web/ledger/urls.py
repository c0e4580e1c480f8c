from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.ledger import card_views, views

app_name = "ledger"
urlpatterns: list[URLPattern] = [
    path("ledger/", views.candidate_list, name="list"),
    path("experiments/<slug:name>/rounds/<int:number>/cards/", card_views.card_list, name="cards"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/cards/<path:card_id>/",
        card_views.card_detail,
        name="card",
    ),
]
