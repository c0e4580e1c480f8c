"""``python -m trainer``: every operation of the method, without Django."""

from __future__ import annotations

import sys

from trainer.cli.main import main

sys.exit(main())
