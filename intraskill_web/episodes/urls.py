from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.episodes import (
    behaviour,
    export,
    files,
    playing_views,
    replay,
    replay_episodes,
    saved,
    views,
)

app_name = "episodes"
urlpatterns: list[URLPattern] = [
    path("episodes/", views.episode_list, name="list"),
    path("episodes/<int:pk>/", views.episode_detail, name="detail"),
    path("episodes/<int:pk>/turns/<int:turn>.txt", views.turn_text, name="turn"),
    path("episodes/<int:pk>/tokens/", views.episode_tokens, name="tokens"),
    path("episodes/<int:pk>/replay/", replay.replay, name="replay"),
    path(
        "episodes/<int:pk>/replay/<int:replay_pk>/",
        replay_episodes.replay_episodes,
        name="replayed-all",
    ),
    path(
        "episodes/<int:pk>/replay/<int:replay_pk>/<int:sample>/",
        replay_episodes.replay_episode,
        name="replayed",
    ),
    path("episodes/export.<str:kind>", export.export, name="export"),
    path("episodes/behaviour/", behaviour.behaviour, name="behaviour"),
    path("episodes/playing/", playing_views.playing_list, name="playing"),
    path(
        "episodes/playing/<int:round_pk>/<path:folder>/<str:name>/",
        playing_views.playing_episode,
        name="follow",
    ),
    path("episodes/files/", files.files, name="files"),
    path("episodes/saved/", saved.save, name="save"),
    path("episodes/saved/<int:pk>/forget/", saved.forget, name="forget"),
]
