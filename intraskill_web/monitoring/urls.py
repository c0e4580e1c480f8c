from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.monitoring import channel_views, inbox_views, views

app_name = "monitoring"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/zoom/", views.zoom, name="zoom"),
    path("experiments/<slug:name>/series/", views.series, name="series"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/panels/<slug:key>/",
        views.panel_page,
        name="panel",
    ),
    path("inbox/", inbox_views.inbox, name="inbox"),
    path("inbox/read/", inbox_views.read, name="read"),
    path("inbox/channels/", channel_views.channels, name="channels"),
    path("inbox/channels/new/<slug:kind>/", channel_views.edit, name="new_channel"),
    path("inbox/channels/<int:pk>/", channel_views.edit, name="channel"),
    path("inbox/channels/<int:pk>/test/", channel_views.test, name="test_channel"),
    path("inbox/channels/<int:pk>/remove/", channel_views.remove, name="remove_channel"),
    path("inbox/deliveries/<int:pk>/again/", channel_views.again, name="again"),
]
