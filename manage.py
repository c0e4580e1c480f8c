#!/usr/bin/env python
"""Django's command line; a slip in the environment is one line, not a traceback."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "intraskill_web.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        settings.INSTALLED_APPS  # noqa: B018  reads the settings, and with them the environment
    except ImproperlyConfigured as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
