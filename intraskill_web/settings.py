"""Settings: one file, everything from the environment, safe defaults that run on a laptop.

``INTRASKILL_HOME`` holds all that changes (see ``home.py``). Without ``DATABASE_URL`` the database
is SQLite in the home; without ``REDIS_URL`` the queue is the embedded Valkey that ``manage.py up``
runs.
"""

from __future__ import annotations

from pathlib import Path

from django.utils.translation import gettext_lazy as _

from intraskill_web import home
from intraskill_web.databases import database
from intraskill_web.env import envbool, envint, envlist, envsecret, envstr
from intraskill_web.queues import redis_url

BASE_DIR = Path(__file__).resolve().parent.parent
INTRASKILL_HOME = Path(envstr("INTRASKILL_HOME", str(BASE_DIR / "var"))).expanduser().resolve()
home.prepare(INTRASKILL_HOME)

INTRASKILL_HOST_NAME = envstr("INTRASKILL_HOST_NAME", home.host_name(INTRASKILL_HOME))

INTRASKILL_HOST = envstr("INTRASKILL_HOST", "127.0.0.1")
INTRASKILL_PORT = envint("INTRASKILL_PORT", 8000, least=1, most=65_535)
INTRASKILL_WEB_THREADS = envint("INTRASKILL_WEB_THREADS", 6, least=1)
INTRASKILL_WORKERS = envint("INTRASKILL_WORKERS", 1, least=1)

# --- security -----------------------------------------------------------------------------------
DEBUG = envbool("DEBUG", False)
SECRET_KEY = envsecret("SECRET_KEY") or home.secret(INTRASKILL_HOME, "django-key", nbytes=48)
ALLOWED_HOSTS = envlist("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = envlist("CSRF_TRUSTED_ORIGINS", [])
HTTPS = envbool(
    "HTTPS", False
)  # set where a proxy ends TLS; a laptop serves plain HTTP on loopback
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = envint("HSTS_SECONDS", 31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
# Without TLS these checks are answered: pages stay on loopback, or HTTPS=True is set.
SILENCED_SYSTEM_CHECKS = (
    [] if HTTPS else ["security.W004", "security.W008", "security.W012", "security.W016"]
)
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "intraskill_web.monitoring.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# Cookies ignore ports, so two homes on one machine would log each other out under one name.
SESSION_COOKIE_NAME = f"intraskill-{home.short_id(INTRASKILL_HOME)}"
CSRF_COOKIE_NAME = f"intraskill-csrf-{home.short_id(INTRASKILL_HOME)}"

# --- applications -------------------------------------------------------------------------------
INSTALLED_APPS = [
    "intraskill_web.core",
    "intraskill_web.experiments",
    "intraskill_web.skills",
    "intraskill_web.gates",
    "intraskill_web.ledger",
    "intraskill_web.episodes",
    "intraskill_web.monitoring",
    "intraskill_web.reports",
    "intraskill_web.configs",
    "intraskill_web.review",
    "jobs",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "django_rq",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "intraskill_web.core.middleware.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "intraskill_web.core.middleware.reader_language",
    "intraskill_web.core.json_errors.JsonErrors",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "intraskill_web.monitoring.reader.ReadersMiddleware",
    "intraskill_web.core.json_errors.LoginRequired",
    "intraskill_web.core.middleware.Messages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "intraskill_web.monitoring.bell.unread_header",
]
ROOT_URLCONF = "intraskill_web.urls"
WSGI_APPLICATION = "intraskill_web.wsgi.application"
AUTHENTICATION_BACKENDS = ["intraskill_web.monitoring.reader.ReaderBackend"]
CSRF_FAILURE_VIEW = "intraskill_web.core.json_errors.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- data ---------------------------------------------------------------------------------------
DATABASES = {"default": database(envsecret("DATABASE_URL"), INTRASKILL_HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = envsecret("REDIS_URL") or ""
INTRASKILL_QUEUE = envstr("INTRASKILL_QUEUE", "stages")  # two installations on one server differ
RQ_QUEUES = {  # for the dashboard of django-rq; jobs/queue.py asks for the address at each call
    f"{INTRASKILL_QUEUE}:{INTRASKILL_HOST_NAME}:{kind}": {
        "URL": redis_url(REDIS_URL, INTRASKILL_HOME),
        "DEFAULT_TIMEOUT": -1,
        "SERIALIZER": "rq.serializers.JSONSerializer",
    }
    for kind in ("gpu", "cpu", "work")  # as placement.py names them
}
RQ_SHOW_ADMIN_LINK = False
RQ = {"COMMIT_MODE": "on_db_commit"}

INTRASKILL_CURRENCY = envstr("INTRASKILL_CURRENCY", "CNY")  # of the shop's prices, on pages

# --- preflight ----------------------------------------------------------------------------------
INTRASKILL_PREFLIGHT = envbool("INTRASKILL_PREFLIGHT", True)  # False: start whatever is red
INTRASKILL_LAUNCH_FOLDER = envstr("INTRASKILL_LAUNCH_FOLDER", str(BASE_DIR / "configs" / "slime"))

# --- messages -----------------------------------------------------------------------------------
INTRASKILL_PUBLIC_URL = envstr(  # what links in messages begin with
    "INTRASKILL_PUBLIC_URL", f"http://{INTRASKILL_HOST}:{INTRASKILL_PORT}"
)
EMAIL_HOST = envstr("EMAIL_HOST", "")  # empty: no e-mail leaves this installation
EMAIL_PORT = envint("EMAIL_PORT", 25)
EMAIL_HOST_USER = envstr("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = envsecret("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = envbool("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = envbool("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = envstr("DEFAULT_FROM_EMAIL", "intraskill@localhost")

# --- languages ----------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = envstr("TIME_ZONE", "UTC")

# --- static files -------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = INTRASKILL_HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "intraskill_web.core.finders.PlotlyFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "intraskill_web.core.storage.HashedStaticFiles"},
}

# --- logging ------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": envstr("LOG_LEVEL", "INFO")},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "rq": {"level": "WARNING"},
        "rq.worker": {"handlers": [], "level": "WARNING", "propagate": True},
    },
}
