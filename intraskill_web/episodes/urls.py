from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.episodes import views

app_name = "episodes"
urlpatterns: list[URLPattern] = [
    path("episodes/", views.episode_list, name="list"),
    path("episodes/<int:pk>/", views.episode_detail, name="detail"),
]
