from __future__ import annotations

from django.urls import URLPattern, path

from intraskill_web.monitoring import bell, channel_views, inbox_views, views
from intraskill_web.monitoring.preflight import views as preflight_views

app_name = "monitoring"
urlpatterns: list[URLPattern] = [
    path("experiments/<slug:name>/zoom/", views.zoom, name="zoom"),
    path("experiments/<slug:name>/series/", views.series, name="series"),
    path(
        "experiments/<slug:name>/rounds/<int:number>/panels/<slug:key>/",
        views.panel_page,
        name="panel",
    ),
    path("experiments/<slug:name>/preflight/", preflight_views.of_experiment, name="preflight"),
    path(
        "experiments/<slug:name>/preflight/check/",
        preflight_views.check_experiment,
        name="check_experiment",
    ),
    path("preflight/slime/", preflight_views.of_launch, name="launches"),
    path("preflight/slime/<str:file>/", preflight_views.of_launch, name="launch"),
    path("preflight/slime/<str:file>/check/", preflight_views.check_launch, name="check_launch"),
    path("inbox/", inbox_views.inbox, name="inbox"),
    path("inbox/unread/", bell.unread, name="unread"),
    path("inbox/read/", inbox_views.read, name="read"),
    path("inbox/channels/", channel_views.channels, name="channels"),
    path("inbox/channels/new/<slug:kind>/", channel_views.edit, name="new_channel"),
    path("inbox/channels/<int:pk>/", channel_views.edit, name="channel"),
    path("inbox/channels/<int:pk>/test/", channel_views.test, name="test_channel"),
    path("inbox/channels/<int:pk>/remove/", channel_views.remove, name="remove_channel"),
    path("inbox/deliveries/<int:pk>/again/", channel_views.again, name="again"),
]
