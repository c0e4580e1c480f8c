"""How fast the shop is, beside SQLite FTS5 on the same data.

    python -m benchmarks.shop [--json] [--products N] [--seconds S] [--growth F] [--workers W]

A synthetic catalogue of the real one's size and text length is loaded from its archive. Memory,
steps, searches and whole episodes are measured one after the other, each in a process of its own
on one core; no search is answered from the query cache, and FTS5 ranks the same documents for the
same queries in the same process. The HTTP part runs the service and 64 clients on two cores.
``--growth`` repeats the searches on a catalogue F times as large (0 leaves it out). About six
minutes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

from benchmarks import shop_http, shop_search, shop_work  # noqa: E402

PRODUCTS = 22_726
EXCLUDED_SHARE = 0.03  # of the generated products, which the cleaning filter drops
CLIENTS = 64
QUERIES = 300
#: steps a second of WebShop's text environment beside a stub searcher, one thread
WEBSHOP = 87.0

PARTS = ("memory", "steps", "episodes", "search", "http", "growth")
ARCHIVE_PARTS = {"memory", "steps", "episodes", "http"}


def measure(part: str, args: argparse.Namespace, archive: Path) -> dict[str, Any]:
    """One part, in this process."""
    generated = round(args.products / (1 - EXCLUDED_SHARE))
    if part == "memory":
        return shop_work.memory(archive)
    if part == "steps":
        return shop_work.compat_steps(archive, args.seconds)
    if part == "episodes":
        return shop_work.standard_episodes(archive, args.seconds, WEBSHOP)
    if part == "search":
        return shop_search.compare(shop_work.records(generated), queries=QUERIES)
    if part == "growth":
        larger = shop_work.records(generated * args.growth)
        return shop_search.growth(larger, queries=QUERIES, factor=args.growth)
    return shop_http.measure(
        archive,
        shop_work.task_ids(archive),
        clients=CLIENTS,
        workers=args.workers,
        seconds=args.seconds,
    )


def run_part(part: str, args: argparse.Namespace, archive: Path) -> dict[str, Any]:
    """One part in a fresh process: on one core, except for HTTP."""
    command = [sys.executable, "-m", "benchmarks.shop", "--part", part, "--archive", str(archive)]
    command += ["--products", str(args.products), "--seconds", str(args.seconds)]
    command += ["--growth", str(args.growth), "--workers", str(args.workers)]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(output.stdout)
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--products", type=int, default=PRODUCTS)
    parser.add_argument("--seconds", type=float, default=10.0, help="of steps, episodes and HTTP")
    parser.add_argument("--growth", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1, help="of the service")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts only")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--archive", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        if args.part != "http" and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(json.dumps(measure(args.part, args, args.archive)))
        return 0
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="shop-benchmark-") as folder:
        archive = Path(folder) / "catalogue.json"
        parts = args.only or PARTS
        if set(parts) & ARCHIVE_PARTS:
            shop_work.write_archive(archive, round(args.products / (1 - EXCLUDED_SHARE)))
        for part in parts:
            if part == "growth" and not args.growth:
                continue
            measured = run_part(part, args, archive)
            print(json.dumps({part: measured}), file=sys.stderr)  # a long run can be watched
            figures |= measured
    if args.json:
        print(json.dumps({"figures": figures}))
    else:
        for name, found in figures.items():
            beside = f"   peer {found['peer']:.4g}, {found['ratio']:.1f} x" if found["peer"] else ""
            print(f"{name:32} {found['value']:12.4g} {found['unit']}{beside}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
