"""``python -m trainer``: every operation of the method, without Django.

A fault of ours prints its traceback and ends with 70, so that it cannot be taken for a result that
is merely negative (1).
"""

from __future__ import annotations

import sys
import traceback

from trainer.cli.main import main

EXIT_FAULT = 70

try:
    code = main()
except Exception:
    traceback.print_exc()
    code = EXIT_FAULT
sys.exit(code)
