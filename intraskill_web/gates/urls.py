from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.gates import task_views, views

app_name = "gates"
urlpatterns: list[URLPattern] = [
    path("gates/", views.gate_list, name="list"),
    path("experiments/<slug:name>/rounds/<int:number>/gate/", views.gate_detail, name="detail"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/gate/tasks/",
        task_views.gate_tasks,
        name="tasks",
    ),
    path("experiments/<slug:name>/test/", task_views.test_detail, name="test"),
]
