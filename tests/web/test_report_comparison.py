"""Comparisons: equal settings are one arm, arms pair over seeds, runs pair over tasks."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from django.core.management import call_command

from intraskill_web.experiments.models import Experiment
from jobs.reports.check import check_report
from jobs.reports.compare import export_comparison
from tests.web.report_run import write_run
from tests.web.test_report_export import reseal
from trainer.analysis import Material, read_material
from trainer.analysis.several import compare_runs
from trainer.errors import InputError
from trainer.files import read_json, write_json

KEY = "test/final_free/success"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms of two seeds: cold and warm sampling."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed, temperature in (
        ("cold-3", 3, 0.5), ("cold-4", 4, 0.5), ("warm-3", 3, 1.0), ("warm-4", 4, 1.0),
    ):  # fmt: skip
        path = write_run(folder / name, rounds=1, seed=seed)
        config = read_json(path / "experiment.json") | {
            "temperature": temperature,
            "mask_seed": seed,
        }
        write_json(path / "experiment.json", config)
    return folder


@pytest.fixture(scope="module")
def materials(runs: Path) -> list[Material]:
    return [read_material(path) for path in sorted(runs.iterdir())]


def test_runs_that_differ_in_their_seeds_only_are_one_arm(materials: list[Material]) -> None:
    found = compare_runs(materials)
    assert [(run.name, run.arm, run.seed) for run in found.runs] == [
        ("cold-3", "A", 3), ("cold-4", "A", 4), ("warm-3", "B", 3), ("warm-4", "B", 4),
    ]  # fmt: skip
    assert found.differing == {"temperature": {"A": 0.5, "B": 1.0}}


def test_mean_and_spread_are_over_the_runs_of_an_arm(materials: list[Material]) -> None:
    found = compare_runs(materials)
    values = [float(run.figures[KEY].value or 0) for run in found.runs if run.arm == "A"]
    row = next(r for r in found.arms if r.arm == "A" and r.figure == KEY)
    assert row.n == 2
    assert row.runs == ["cold-3", "cold-4"]
    assert row.mean == pytest.approx(statistics.fmean(values), abs=1e-15)
    assert row.sd == pytest.approx(statistics.stdev(values), abs=1e-15)
    assert (row.least, row.most) == (min(values), max(values))
    assert row.interval is not None
    half = 12.706204736432095 * statistics.stdev(values) / 2**0.5  # t of 1 degree of freedom
    assert row.interval[1] - row.mean == pytest.approx(half, rel=1e-9)


def test_arms_pair_over_common_seeds(materials: list[Material]) -> None:
    found = compare_runs(materials)
    pair = next(p for p in found.seed_pairs if p.figure == KEY)
    by_run = {run.name: float(run.figures[KEY].value or 0) for run in found.runs}
    gaps = [by_run["warm-3"] - by_run["cold-3"], by_run["warm-4"] - by_run["cold-4"]]
    assert (pair.a, pair.b, pair.seeds, pair.n) == ("A", "B", [3, 4], 2)
    assert pair.difference == pytest.approx(statistics.fmean(gaps), abs=1e-15)
    assert all(p.p <= p.p_holm <= 1.0 for p in found.seed_pairs)


def test_runs_pair_over_the_tasks_that_both_played(materials: list[Material]) -> None:
    found = compare_runs(materials)
    same = [p for p in found.run_pairs if p.contrast.name == "warm-3 − cold-3"]
    assert {(p.contrast.split, p.condition) for p in same} == {
        ("test", "final_free"), ("test", "final_st"), ("val", "base_free"), ("val", "base_s0"),
        ("val", "final_free"), ("val", "final_st"),
    }  # fmt: skip
    # The same seed drew the same episodes: nothing differs, and nothing is claimed.
    assert all(d.difference == 0 and d.p == 1.0 for p in same for d in p.contrast.differences)
    other = next(p for p in found.run_pairs if p.contrast.name == "cold-4 − cold-3")
    assert other.contrast.n == 24
    assert sum((other.contrast.transitions or {}).values()) == 24
    assert all(other.p_holm[d.metric] >= (d.p or 0) for d in other.contrast.differences)


def test_one_run_twice_or_alone_is_refused(materials: list[Material]) -> None:
    for given in (materials[:1], [materials[0], materials[0]]):
        with pytest.raises(InputError, match="two runs at least, each once"):
            compare_runs(given)


@pytest.fixture
def experiments(db: None, home: Path, runs: Path) -> list[Experiment]:
    (home / "runs").rmdir()
    (home / "runs").symlink_to(runs)
    return [Experiment.objects.create(name=p.name) for p in sorted(runs.iterdir())]


def test_the_export_holds_in_both_languages_and_finds_what_was_improved(
    experiments: list[Experiment], tmp_path: Path
) -> None:
    made = export_comparison(experiments, tmp_path / "site", archive=True)
    found = check_report(made.folder)
    assert found["problems"] == []
    assert found["checks"]["contrasts"] == 36
    assert "Comparison of 4 runs" in (made.folder / "index.html").read_text(encoding="utf-8")
    again = export_comparison(experiments, tmp_path / "again" / "site")
    assert again.manifest_sha256 == made.manifest_sha256
    path = made.folder / "data/comparison.json"
    document = json.loads(path.read_bytes())
    document["run_pairs"][0]["contrast"]["differences"][0]["difference"] += 0.01
    path.write_text(json.dumps(document))
    reseal(made.folder)
    assert [p["file"] for p in check_report(made.folder)["problems"]] == ["data/comparison.json"]


def test_several_names_on_the_command_line_make_a_comparison(
    experiments: list[Experiment], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "site"
    call_command("export_report", "cold-3", "warm-3", out=out, json=True)
    assert json.loads(capsys.readouterr().out)["files"] > 10
    manifest = json.loads((out / "build-manifest.json").read_bytes())
    assert (manifest["kind"], manifest["experiments"]) == ("comparison", ["cold-3", "warm-3"])
