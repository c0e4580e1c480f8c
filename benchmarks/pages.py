"""Pages of a long experiment and of a large gate: how long the server thinks about them.

    python -m benchmarks.pages [--json] [--repeat 9]

The overview, the round page and their polls of 100 rounds with series of 80 steps, and the page of
a gate of 64 interventions × 8 reward components. ``first`` is what the first request of a fresh
process takes, once the application is loaded as the web server loads it; ``warm`` is the quickest
of the following. ``never seen`` is a gate whose long draw nobody has made yet; it is kept beside
the gate. Milliseconds of the clock, and of the CPU, by which bars are judged: others may share the
machine; ``ratio`` is the CPU time over that of a million squares summed in the same process, which
takes about 60 ms where nobody else works. Queries are counted. On SQLite, and on the PostgreSQL of
``DATABASE_URL`` (``.ci/postgres python -m benchmarks.pages``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

GATE = "gate 64 × 8"
# name → (address, bar of a warm request in ms, bar of the first)
PAGES: dict[str, tuple[str, float, float | None]] = {
    "overview": ("/experiments/long/", 100.0, 500.0),
    "round": ("/experiments/long/rounds/99/", 100.0, 500.0),
    GATE: ("/experiments/large/rounds/0/gate/", 150.0, 500.0),
}
POLL_MS = 5.0
Row = dict[str, Any]


def main() -> None:
    """Measure, or be the fresh process that answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--answer", metavar="PAGE", choices=PAGES, help=argparse.SUPPRESS)
    parser.add_argument("--first", default="first", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        print(json.dumps(answer(args.answer, args.repeat, args.first)))
        return
    figures = measure(args.repeat)
    if args.json:
        print(json.dumps({"figures": figures}))
        return
    print("| page | ms | CPU ms | ratio | queries | bar | met |\n|---|---|---|---|---|---|---|")
    for name, row in figures.items():
        bar = row["bar_ms"]
        met = "" if bar is None else "yes" if row["cpu_ms"] < bar else "no"
        print(
            f"| {name} | {row['ms']:.1f} | {row['cpu_ms']:.1f} | {row['ratio']:.2f} "
            f"| {row['queries']} "
            f"| {'' if bar is None else f'{bar:.0f}'} | {met} |"
        )


def measure(repeat: int) -> dict[str, Row]:
    """The figures of all pages, each asked in a process of its own."""
    figures: dict[str, Row] = {}
    with _home():
        _fill()
        figures |= _asked_apart(GATE, 0, "never seen")
        for page in PAGES:
            figures |= _asked_apart(page, repeat)
    return figures


def _asked_apart(page: str, repeat: int, first: str = "first") -> dict[str, Row]:
    command = [sys.executable, "-m", "benchmarks.pages", "--answer", page, "--first", first]
    done = subprocess.run(
        [*command, "--repeat", str(repeat)], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(done.stdout))


def answer(page: str, repeat: int, called: str) -> dict[str, Row]:
    """The first request of this process, ``repeat`` warm ones, and polls without news."""
    from intraskill_web.wsgi import application  # noqa: F401 - what the server loads first

    client = _reader()
    path, warm, first = PAGES[page]
    bar = first if called == "first" else None
    rows = {f"{page}, {called}": _asked(client, path, 1) | {"bar_ms": bar}}
    if not repeat:
        return rows
    rows[f"{page}, warm"] = _asked(client, path, repeat) | {"bar_ms": warm}
    tag = client.get(f"{path}?part=live").get("ETag")
    if tag:
        head = {"If-None-Match": tag}
        asked = _asked(client, f"{path}?part=live", 4 * repeat, status=304, headers=head)
        rows[f"{page}, poll without news"] = asked | {"bar_ms": POLL_MS}
    return rows


def _asked(client: Any, path: str, times: int, *, status: int = 200, headers: Any = None) -> Row:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    clock, cpu = [], []
    for _ in range(times):
        began, began_cpu = time.perf_counter(), time.process_time()
        got = client.get(path, headers=headers)
        cpu.append((time.process_time() - began_cpu) * 1e3)
        clock.append((time.perf_counter() - began) * 1e3)
        assert got.status_code == status, (path, got.status_code)
    with CaptureQueriesContext(connection) as queries:
        client.get(path, headers=headers)
    return {
        "ms": min(clock),
        "cpu_ms": min(cpu),
        "ratio": min(cpu) / _squares_ms(),
        "queries": len(queries),
    }


def _squares_ms() -> float:
    taken = []
    for _ in range(3):
        began = time.process_time()
        sum(i * i for i in range(10**6))
        taken.append((time.process_time() - began) * 1e3)
    return min(taken)


def _reader() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username="reader"))
    return client


def _fill() -> None:
    import django

    django.setup()
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command

    from benchmarks.pages_data import gate_to_fill, large_gate, long_experiment

    call_command("migrate", interactive=False, verbosity=0)
    long_experiment()
    large_gate(gate_to_fill("large"))
    User.objects.create_user("reader").groups.add(Group.objects.get(name="viewer"))


@contextmanager
def _home() -> Iterator[None]:
    folder = tempfile.mkdtemp(prefix="intraskill-pages-")
    before = dict(os.environ)
    os.environ |= {
        "INTRASKILL_HOME": folder,
        "DJANGO_SETTINGS_MODULE": "intraskill_web.settings",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
