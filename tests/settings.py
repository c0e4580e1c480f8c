"""The product's settings in a temporary home folder; nothing in a test touches ``./var``."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

os.environ["INTRASKILL_HOME"] = tempfile.mkdtemp(prefix="intraskill-test-")
os.environ.pop("REDIS_URL", None)
atexit.register(shutil.rmtree, os.environ["INTRASKILL_HOME"], ignore_errors=True)

from intraskill_web.core.po import compile_stale  # noqa: E402
from intraskill_web.settings import *  # noqa: E402, F403
from intraskill_web.settings import LOCALE_PATHS  # noqa: E402

compile_stale(LOCALE_PATHS)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast, and worth nothing here
INTRASKILL_PREFLIGHT = False  # rounds of tests are scripts; what tests the preflight turns it on
