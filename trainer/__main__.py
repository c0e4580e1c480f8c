"""``python -m trainer``: every operation of the method, without Django.

A fault of ours prints its traceback and ends with 70, so that it cannot be taken for a result that
is merely negative (1).

The statistics run on one thread: the number of threads decides the last bits of sums, and documents
must not depend on how many cores a machine has. On a busy machine it is also much faster. The
engine sets its own threads.
"""

from __future__ import annotations

import os
import sys
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported

from trainer.cli.main import main

EXIT_FAULT = 70

try:
    code = main()
except Exception:
    traceback.print_exc()
    code = EXIT_FAULT
sys.exit(code)
