"""The routes of every app."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView, PasswordChangeView
from django.urls import include, path
from django.views.i18n import set_language

from intraskill_web.core.views import SignIn

urlpatterns = [
    path("", include("intraskill_web.episodes.urls")),  # first, because asked most often
    path("", include("intraskill_web.core.urls")),
    path("", include("intraskill_web.experiments.urls")),
    path("", include("intraskill_web.skills.urls")),
    path("", include("intraskill_web.gates.urls")),
    path("", include("intraskill_web.ledger.urls")),
    path("", include("intraskill_web.review.urls")),
    path("", include("intraskill_web.monitoring.urls")),
    path("", include("intraskill_web.reports.urls")),
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path(
        "password/",
        PasswordChangeView.as_view(template_name="core/password.html", success_url="/"),
        name="password_change",
    ),
    path("language/", login_not_required(set_language), name="set_language"),
    path("queue/", include("django_rq.urls")),  # the second view, for staff
    path("admin/", admin.site.urls),
]
handler404 = "intraskill_web.core.missing.not_found"
