"""The WSGI application that gunicorn serves.

``INTRASKILL_WARM=0`` starts two seconds of CPU sooner and lets the first visitors wait instead, for
homes that live a minute.
"""

from __future__ import annotations

import gc
import importlib
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "intraskill_web.settings")
# pages calculate with small matrices, for which threads of a library only wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()


def _load() -> None:
    """What pages need at their first request; else the first visitor after a restart waits."""
    from django.urls import get_resolver

    from intraskill_web.core.definitions import definitions

    _ = get_resolver().url_patterns
    definitions()
    importlib.import_module("intraskill_web.configs.admin_views")
    importlib.import_module("scipy.optimize")  # of a gate's shrunk effects
    gc.collect()
    gc.freeze()  # what is loaded stays: no collection need walk it in the middle of a request


if os.environ.get("INTRASKILL_WARM", "1") != "0":
    _load()
