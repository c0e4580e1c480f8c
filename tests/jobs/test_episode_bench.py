"""The benchmark of the episode browser prints the figures that are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.episodes import Bench
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Experiment


def test_the_pace_of_ingest_is_told_of_each_size_and_of_all(
    transactional_db: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, "sqlite")
    bench.experiment = Experiment.objects.create(name="bench")
    monkeypatch.setattr(bench, "measure", lambda size: setattr(bench, "loaded", size))
    bench.grow(40)
    bench.grow(60)
    assert Episode.objects.count() == 60
    first, second, both = (
        bench.figures[f"ingest_turns_per_s{size}"]["value"] for size in ("_40", "_60", "")
    )
    assert min(first, second) <= both <= max(first, second)
    assert bench.turns == sum(Episode.objects.values_list("turns", flat=True))
