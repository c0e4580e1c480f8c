"""``python -m trainer.engines.slime CONFIG [--dry-run | --variables]``: the plan of a launch.

Submitting the plan is the job runner's part (``jobs.launchers.ray_job``); this module prints and
checks it without Ray. Exit code 2 when a refusal stands.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trainer.engines.slime.checks import failures
from trainer.engines.slime.plan import plan_launch
from trainer.engines.slime.variables import variables
from trainer.errors import InputError


def main(argv: Sequence[str] | None = None) -> int:
    """Print the plan as JSON; every failed check is also a line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m trainer.engines.slime", description=__doc__)
    parser.add_argument("config", type=Path, nargs="?")
    parser.add_argument("--dry-run", action="store_true", help="print the plan (the default)")
    parser.add_argument("--variables", action="store_true", help="list the environment variables")
    args = parser.parse_args(argv)
    if args.variables:
        _print([_row(item.name, item.field, item.default, item.meaning) for item in variables()])
        return 0
    if args.config is None:
        parser.error("name a configuration file")
    try:
        plan = plan_launch(args.config, os.environ)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _print(plan.to_json())
    refused = failures(plan.checks)
    for check in refused:
        sys.stderr.write(f"{check.name}: {check.detail}. {check.remedy}\n")
    return 2 if refused else 0


def _row(name: str, field: str, default: object, meaning: str) -> dict[str, object]:
    return {"name": name, "field": field, "default": default, "meaning": meaning}


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
