"""The episode browser at size: ingest, list, text search, opening a page, disk.

    python -m benchmarks.episodes [--sizes 20000,200000] [--database sqlite|postgres]
                                  [--peers PYTHON] [--folder F [--again]] [--out FILE]

Each size is loaded on top of the one before, so the growth of every figure shows. Times of pages
are those of the whole request inside the server process (middleware, queries, template), without
the network; ``p95`` is over a mix of requests, each with other values. ``_cpu_`` figures are CPU
time of the same work, for machines that are busy with other things: on SQLite, which runs inside
the process, they are what an idle machine needs. ``http_`` figures are the questions that peers
answer too, over HTTP (``episodes_peers.py``), at the first size. PostgreSQL is the server that
DATABASE_URL names (``.ci/postgres`` starts one). ``--out`` is written after every size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.episodes_peers import OURS, compared
from benchmarks.episodes_requests import Figure, facets, figure, lists, percentile, searches

SIZES = (20_000, 200_000)
REPEATS = 12
MIX = {"list": (lists, "/episodes/?{}"), "search": (searches, "/episodes/?q={}"),
       "json_list": (lists, "/episodes/?{}&format=json"),
       "json_search": (searches, "/episodes/?q={}&format=json"),
       "facets": (facets, "/episodes/?{}")}  # fmt: skip
OPEN = {"open": "/episodes/{}/", "json_open": "/episodes/{}/?format=json"}
PARTS = ("index", "bodies")
Times = dict[str, list[tuple[float, float]]]  # milliseconds, wall clock and CPU


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those it waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


class Bench:
    """One database at one size after the other."""

    def __init__(self, folder: Path, database: str, peers_python: str | None = None) -> None:
        self.folder, self.database, self.peers_python = folder, database, peers_python
        self.figures: dict[str, Figure] = {}
        self.loaded = 0
        self.turns, self.ingest_s = 0, 0.0  # of all sizes

    def prepare(self) -> None:
        """The home and database in the folder, made where there is none."""
        os.environ["INTRASKILL_HOME"] = str(self.folder / "home")
        os.environ["DJANGO_SETTINGS_MODULE"] = "intraskill_web.settings"
        if self.database == "sqlite":
            os.environ.pop("DATABASE_URL", None)
        import django

        django.setup()
        from django.contrib.auth.models import User
        from django.core.management import call_command
        from django.test import Client

        from intraskill_web.experiments.models import Experiment

        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        self.experiment, _new = Experiment.objects.get_or_create(name="bench")
        self.client = Client()
        user, _new = User.objects.get_or_create(username="bench", is_superuser=True)
        self.client.force_login(user)

    def grow(self, size: int) -> None:
        """Load up to ``size`` episodes and measure everything."""
        from benchmarks.episodes_work import write_parts
        from jobs.episodes.ingest import ingest

        parts = self.folder / f"traces-{size}"
        begun = time.monotonic()
        write_parts(parts, self.loaded, size - self.loaded)
        self.say(f"{size:,} made in {time.monotonic() - begun:.0f} s")
        before = _cpu_seconds()
        report = ingest(parts, self.experiment)
        assert report.episodes == size - self.loaded, report
        pace = report.turns / report.seconds
        used = _cpu_seconds() - before
        self.note(f"ingest_turns_per_cpu_s_{size}", figure(report.turns / used, "turns/CPU s"))
        self.say(f"{report.episodes:,} episodes, {report.turns:,} turns: {pace:,.0f} turns/s")
        self.note(f"ingest_turns_per_s_{size}", figure(pace, "turns/s"))
        self.turns, self.ingest_s = self.turns + report.turns, self.ingest_s + report.seconds
        self.note("ingest_turns_per_s", figure(self.turns / self.ingest_s, "turns/s, all sizes"))
        again = time.monotonic()
        assert ingest(parts, self.experiment).episodes == 0
        self.note(f"ingest_again_s_{size}", figure(time.monotonic() - again, "s"))
        shutil.rmtree(parts)
        self.measure(size)

    def measure(self, size: int) -> None:
        """Everything but the ingest, of ``size`` episodes that are there."""
        self.loaded = size
        self._disk(size)
        self._pages(size)

    def _disk(self, size: int) -> None:
        from django.db import connection

        from intraskill_web.episodes import bodies

        packs = sum(file.stat().st_size for file in bodies.folder().glob("*.zst"))
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            index = (self.folder / "home" / "db.sqlite3").stat().st_size
        else:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_database_size(current_database())")
                (index,) = cursor.fetchone()
        self.note(f"index_mb_{size}", figure(index / 1e6, "MB"))
        self.note(f"bodies_mb_{size}", figure(packs / 1e6, "MB"))

    def _pages(self, size: int) -> None:
        rng = random.Random(size)
        for name, (asked, template) in MIX.items():
            times = self._timed(lambda asked=asked: asked(rng, size), template)  # type: ignore[misc]
            self._note_mix(name, size, times)
        from intraskill_web.episodes.models import Episode

        ids = list(Episode.objects.values_list("pk", flat=True))
        for name, template in OPEN.items():
            times = self._timed(lambda: {"page": str(rng.choice(ids))}, template, 100)
            self._note_mix(name, size, times)

    def compare(self, size: int) -> None:
        """The questions that peers answer too, over HTTP, and their answers."""
        from django.conf import settings

        name = settings.SESSION_COOKIE_NAME
        cookie = {name: self.client.cookies[name].value}
        found = compared(self.peers_python, cookie, self.folder, size)
        mine = found.pop(OURS)
        mine["turns_per_s"] = self.figures[f"ingest_turns_per_s_{size}"]["value"]
        mine["disk_mb"] = sum(self.figures[f"{part}_mb_{size}"]["value"] for part in PARTS)
        for key, value in mine.items():
            unit = {"turns_per_s": "turns/s", "disk_mb": "MB"}.get(key, "ms")
            self.note(f"http_{key}", figure(value, unit))
            for peer, theirs in found.items():
                if key in theirs:
                    ratio = figure(value, unit, theirs[key], faster=key != "turns_per_s")
                    self.note(f"http_{key}_{peer}", ratio | {"version": theirs["version"]})

    def _timed(
        self, addresses: Callable[[], dict[str, str]], template: str, repeats: int = REPEATS
    ) -> Times:
        """Milliseconds by kind of request, wall clock and CPU."""
        times: Times = {}
        for _ in range(repeats):
            for kind, query in addresses().items():
                begun, cpu = time.perf_counter(), time.process_time()
                answer = self.client.get(template.format(query), headers={"host": "localhost"})
                elapsed = time.perf_counter() - begun, time.process_time() - cpu
                assert answer.status_code == 200, (kind, query, answer.status_code)
                times.setdefault(kind, []).append((elapsed[0] * 1000, elapsed[1] * 1000))
        return times

    def _note_mix(self, name: str, size: int, times: Times) -> None:
        every = [t for values in times.values() for t in values]
        for percent in (50, 95):
            for clock, label in ((0, ""), (1, "_cpu")):
                value = percentile([t[clock] for t in every], percent)
                self.note(f"{name}_p{percent}{label}_ms_{size}", figure(value, "ms"))
        for kind, values in times.items():
            if len(times) > 1:
                wall, cpu = ([t[clock] for t in values] for clock in (0, 1))
                self.say(
                    f"  {name:<11} {kind:<26} median {percentile(wall, 50):7.1f} ms,"
                    f" slowest {max(wall):7.1f}; CPU {percentile(cpu, 50):7.1f}, {max(cpu):7.1f}"
                )

    def long_episode(self) -> None:
        """Open an episode of 2,000 turns and 5 MB."""
        from benchmarks.episodes_work import long_trace
        from intraskill_web.episodes.models import Episode
        from jobs.episodes.ingest import ingest
        from trainer.files import append_jsonl

        append_jsonl(self.folder / "long.jsonl", [long_trace()])
        size = (self.folder / "long.jsonl").stat().st_size
        ingest(self.folder / "long.jsonl", self.experiment)
        row = Episode.objects.get(episode_id="long")
        times = self._timed(lambda: {"page": str(row.pk)}, "/episodes/{}/", 20)["page"]
        for clock, label in ((0, ""), (1, "_cpu")):
            value = percentile([t[clock] for t in times], 95)
            self.note(f"open_long_p95{label}_ms", figure(value, f"ms, {size / 1e6:.1f} MB"))
        row.delete()

    def note(self, name: str, value: Figure) -> None:
        """Keep a figure and say it."""
        self.figures[name] = value
        ratio = f"  ({value['ratio']:.1f} x peer)" if value["ratio"] is not None else ""
        self.say(f"{name:<32} {value['value']:12,.1f} {value['unit']}{ratio}")

    def say(self, text: str) -> None:
        """A line for people."""
        print(f"[{self.database}] {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--folder", type=Path, help="where to work; kept afterwards")
    parser.add_argument("--peers", help="a Python with mlflow, inspect-ai and requests in it")
    parser.add_argument("--again", action="store_true", help="measure what --folder holds")
    parser.add_argument("--out", type=Path, help="a file for the figures")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="episodes-"))
    bench = Bench(folder, options.database, options.peers)
    try:
        bench.prepare()
        for number, size in enumerate(sorted(int(text) for text in options.sizes.split(","))):
            if options.again:
                bench.measure(size)
            else:
                bench.grow(size)
            if not number and not options.again:
                bench.compare(size)
            if options.out:
                options.out.write_text(json.dumps({"figures": bench.figures}))
        if not options.again:
            bench.long_episode()
        if options.out:
            options.out.write_text(json.dumps({"figures": bench.figures}))
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"figures": bench.figures}) if options.json else "")


if __name__ == "__main__":
    main()
