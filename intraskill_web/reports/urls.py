from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.reports import order_views, views

app_name = "reports"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/reports/", views.export_list, name="list"),
    path("experiments/<slug:name>/reports/start/", views.start, name="start"),
    path("experiments/<slug:name>/evaluations/", order_views.order_list, name="orders"),
    path("experiments/<slug:name>/evaluations/plan/", order_views.plan, name="order_plan"),
    path(
        "experiments/<slug:name>/evaluations/<slug:order>/run/", order_views.run, name="order_run"
    ),
    path(
        "experiments/<slug:name>/evaluations/<slug:order>/stop/",
        order_views.stop,
        name="order_stop",
    ),
    path("reports/", views.comparisons, name="compare"),
    path("reports/start/", views.compare, name="compare_start"),
    path("reports/<int:pk>/again/", views.again, name="again"),
    path("reports/<int:pk>/download/", views.download, name="download"),
    path("reports/<int:pk>/site/<path:path>", views.preview, name="preview"),
]
