from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.experiments import queue_views, views

app_name = "experiments"
urlpatterns: list[URLPattern] = [
    path("", views.experiment_list, name="list"),
    path("experiments/<slug:name>/", views.experiment_detail, name="detail"),
    path("experiments/<slug:name>/actions/<slug:action>/", views.act, name="act"),
    path("experiments/<slug:name>/rounds/<int:number>/", views.round_detail, name="round"),
    path("jobs/", queue_views.queue_page, name="queue"),
    path("jobs/attempts/<int:pk>/", queue_views.attempt_page, name="attempt"),
    path("jobs/attempts/<int:pk>/log/", queue_views.log_lines, name="log"),
    path("jobs/attempts/<int:pk>/log.txt", queue_views.log_file, name="log_file"),
]
