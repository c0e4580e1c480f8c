from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.experiments import new_views, queue_views, rework_views, sweep_views, views
from intraskill_web.monitoring.attempts import views as attempt_views

app_name = "experiments"
urlpatterns: list[URLPattern] = [
    path("", views.experiment_list, name="list"),
    path("experiments/<slug:name>/", views.experiment_detail, name="detail"),
    path("experiments/<slug:name>/actions/<slug:action>/", views.act, name="act"),
    path("experiments/<slug:name>/rounds/<int:number>/", views.round_detail, name="round"),
    path("new/", new_views.new_experiment, name="new"),
    path("sweeps/", sweep_views.sweep_list, name="sweeps"),
    path("sweeps/<slug:name>/", sweep_views.sweep_detail, name="sweep"),
    path("sweeps/<slug:name>/withdraw/", sweep_views.withdraw_sweep, name="withdraw"),
    path("experiments/<slug:name>/next/", rework_views.change_next_round, name="next"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/stages/<slug:kind>/retry/",
        rework_views.retry_stage,
        name="retry",
    ),
    path(
        "experiments/<slug:name>/rounds/<int:number>/stages/<slug:kind>/skip/",
        rework_views.skip_stage,
        name="skip",
    ),
    path("jobs/", queue_views.queue_page, name="queue"),
    path("jobs/attempts/<int:pk>/", attempt_views.attempt_page, name="attempt"),
    path("jobs/attempts/<int:pk>/log/", attempt_views.log_lines, name="log"),
    path("jobs/attempts/<int:pk>/log.txt", attempt_views.log_file, name="log_file"),
]
