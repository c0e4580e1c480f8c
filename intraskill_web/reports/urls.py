from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.reports import views

app_name = "reports"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/reports/", views.export_list, name="list"),
    path("experiments/<slug:name>/reports/start/", views.start, name="start"),
    path("reports/<int:pk>/again/", views.again, name="again"),
    path("reports/<int:pk>/download/", views.download, name="download"),
    path("reports/<int:pk>/site/<path:path>", views.preview, name="preview"),
]
