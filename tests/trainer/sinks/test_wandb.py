"""W&B: the specified names in offline files, no secret, no answer; failures are told."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.errors import InputError
from trainer.files import write_json, write_jsonl, write_text
from trainer.sinks.base import MetricPoint
from trainer.sinks.stage_reports import analysis_report, gate_report, report_of
from trainer.sinks.wandb import (
    WandbSettings,
    WandbSink,
    add_flags,
    report_stage,
    settings_from,
    training_sinks,
)

SECRET = "sk-0123456789abcdefghijklmnopqrstuvwxyz0123456789"
ANSWER = "the-private-goal-of-a-task"


@pytest.fixture(autouse=True)
def _places_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR"):
        monkeypatch.setenv(name, "/nowhere")


needs_wandb = pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="wandb is not installed: pip install wandb"
)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A finished gate of two columns."""
    folder = tmp_path / "demo" / "round-000" / "gate"
    counts = {
        "requested": 4,
        "trace_files": 4,
        "completed": 4,
        "failed": 0,
        "scored": 4,
        "coverage": 1.0,
    }
    summary = {
        "counts": counts,
        "primary": {"reward_mean": 0.79, "reward_sem": 0.02, "success_rate": 0.775},
        "reward_components": {"r_att": 0.9, "r_strict": 0.79, "note": "no number"},
    }
    write_json(
        folder / "online_gate_manifest.json",
        {
            "status": "complete",
            "summary": summary,
            "input": {"bare_baseline": {"mean_outcomes": {"reward": 0.76, "r_success": 0.74}}},
        },
    )
    rows = [
        contribution("chunk-a", 0.03, 1, "selected"),
        contribution("online-b", -0.01, None, "rejected"),
    ]
    write_json(
        folder / "contributions.json",
        {
            "contributions": rows,
            "selected_intervention_ids": ["chunk-a"],
            "estimates": {"reward": {"bare_mean": 0.76, "masked_mean": 0.79, "delta_mean": 0.03}},
        },
    )
    write_json(folder / "selected_skillbank.json", {"skills": []})
    write_text(folder / "selected_skill.md", "# Shopping Skill\n")
    return folder


def contribution(name: str, value: float, rank: int | None, status: str) -> dict[str, Any]:
    return {
        "intervention_id": name,
        "logical_chunk_id": name,
        "operation": "ADD",
        "coefficient": value,
        "rank": rank,
        "status": status,
    }


@pytest.fixture
def analysis(tmp_path: Path) -> Path:
    """A finished analysis with privileged cards."""
    folder = tmp_path / "demo" / "round-000" / "analysis"
    write_json(
        folder / "analysis_summary.json",
        {
            "triage_groups": 87,
            "analyzed_cards": 87,
            "eligible_cards": 61,
            "candidates": 6,
            "proposal_history_records": 0,
            "evidence_only_card_ids": ["a", "b"],
        },
    )
    write_json(folder / "candidate_pool.json", {"candidates": []})
    write_jsonl(folder / "proposal_ledger.jsonl", [])
    write_jsonl(folder / "failure_cards.jsonl", [{"target_asin": ANSWER, "goal_options": [ANSWER]}])
    return folder


def test_the_metrics_of_a_gate_have_their_specified_names_and_sources(gate: Path) -> None:
    report = gate_report(gate)
    assert report.metrics == pytest.approx(
        {
            "gate/complete": 1.0,
            "gate/validation/requested": 4.0,
            "gate/validation/trace_files": 4.0,
            "gate/validation/completed": 4.0,
            "gate/validation/failed": 0.0,
            "gate/validation/scored": 4.0,
            "gate/validation/coverage": 1.0,
            "gate/masked/reward_mean": 0.79,
            "gate/masked/reward_sem": 0.02,
            "gate/masked/success_rate": 0.775,
            "gate/masked/reward_component/r_att": 0.9,
            "gate/masked/reward_component/r_strict": 0.79,
            "gate/bare/reward": 0.76,
            "gate/bare/r_success": 0.74,
            "gate/reward/bare_mean": 0.76,
            "gate/reward/masked_mean": 0.79,
            "gate/reward/delta_mean": 0.03,
            "gate/intervention_count": 2.0,
            "gate/positive_chunk_count": 1.0,
            "gate/selected_chunk_count": 1.0,
            "gate/coefficient_mean": 0.01,
            "gate/coefficient_max": 0.03,
        },
        abs=1e-12,
    )
    assert report.table[0] == ("chunk-a", "chunk-a", "ADD", 0.03, 1, "selected")
    assert {path.name for path in report.files} == {
        "online_gate_manifest.json",
        "contributions.json",
        "selected_skillbank.json",
        "selected_skill.md",
    }


def test_an_incomplete_gate_says_only_how_far_it_came(gate: Path) -> None:
    manifest = json.loads((gate / "online_gate_manifest.json").read_text())
    manifest["status"] = "incomplete"
    write_json(gate / "online_gate_manifest.json", manifest)
    report = gate_report(gate)
    assert report.metrics["gate/complete"] == 0.0
    assert {name.partition("/")[2].partition("/")[0] for name in report.metrics} == {
        "complete",
        "validation",
    }
    assert report.table == ()


def test_the_published_gates_give_their_metrics(published: Path) -> None:
    for number, masked in enumerate((0.7916607142857143, 0.8406904761904762, 0.8797738095238096)):
        folder = published / "artifacts" / f"round-00{number}" / "gate"
        manifest = json.loads((folder / "online_gate_manifest.json").read_text())
        assert manifest["summary"]["primary"]["reward_mean"] == masked
    summary = published / "artifacts" / "round-000" / "analysis"
    report = analysis_report(summary)
    assert report.metrics == {
        "analysis/triage_groups": 87.0,
        "analysis/analyzed_cards": 87.0,
        "analysis/eligible_cards": 61.0,
        "analysis/candidates": 6.0,
        "analysis/proposal_history_records": 0.0,
        "analysis/evidence_only_cards": 13.0,
    }


def test_gold_aware_cards_belong_to_a_report_only_when_asked_for(analysis: Path) -> None:
    plain = {path.name for path in analysis_report(analysis).files}
    assert plain == {"analysis_summary.json", "candidate_pool.json", "proposal_ledger.jsonl"}
    told = {path.name for path in analysis_report(analysis, privileged=True).files}
    assert told - plain == {"failure_cards.jsonl"}


def test_a_folder_of_neither_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a gate nor an analysis"):
        report_of(tmp_path)


def everything_below(folder: Path) -> bytes:
    """Every byte of every file, names included."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path).encode())
        if path.is_file():
            parts.append(path.read_bytes())
    return b"\n".join(parts)


@needs_wandb
def test_offline_files_hold_the_specified_names_no_secret_and_no_answer(
    gate: Path, analysis: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    settings = WandbSettings(mode="offline", folder=tmp_path / "tracker", entity=None)
    sink = WandbSink(settings, name="demo", round_id="round-000", folder=tmp_path / "train")
    for step in (1, 2):
        metrics = {"rollout/shopsim/success_rate": 0.5, "rollout/shopsim/chunk/a/target_rho": 0.9}
        sink.log(MetricPoint(step, metrics, {"rollout": 2.0}))
    sink.close()
    for folder in (gate, analysis):
        problem = report_stage(
            report_of(folder), settings, name="demo", round_id="round-000", folder=folder
        )
        assert problem == {}
    written = everything_below(tmp_path / "tracker")
    runs = list((tmp_path / "tracker" / "wandb").glob("offline-run-*"))
    assert len(runs) == 3
    for name in (
        "rollout/step",
        "rollout/shopsim/success_rate",
        "rollout/shopsim/chunk/a/target_rho",
        "perf/rollout_time",
        "demo-round-000",
        "demo-gate",
        "demo-analysis",
        "shopsimrl_stage",
        "shopsimrl-demo-gate",
        "shopsimrl-analysis",
        "gate/complete",
        "gate/validation/coverage",
        "gate/masked/reward_component/r_att",
        "gate/reward/delta_mean",
        "gate/coefficient_max",
        "gate/chunk_contributions",
        "analysis/evidence_only_cards",
    ):
        assert name.encode() in written, name
    for forbidden in (SECRET, ANSWER, "target_asin", "goal_options", "failure_cards"):
        assert forbidden.encode() not in written, forbidden


@needs_wandb
def test_cards_are_uploaded_after_the_explicit_flag(analysis: Path, tmp_path: Path) -> None:
    settings = WandbSettings(mode="offline", folder=tmp_path / "tracker", privileged=True)
    report = analysis_report(analysis, privileged=settings.privileged)
    assert report_stage(report, settings, name="d", round_id="r", folder=analysis) == {}
    assert ANSWER.encode() in everything_below(tmp_path / "tracker")


def test_a_tracker_that_fails_is_told_and_nothing_more(
    gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise ConnectionError("no route to the tracker")

    fake = SimpleNamespace(init=broken, Settings=lambda **_: None)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    settings = WandbSettings(folder=tmp_path / "tracker")
    problem = report_stage(gate_report(gate), settings, name="d", round_id="r", folder=gate)
    assert problem == {"wandb_error": "ConnectionError: no route to the tracker"}
    sinks = training_sinks(
        {"USE_WANDB": "1", "WANDB_DIR": str(tmp_path)}, name="d", round_id="r", folder=tmp_path
    )
    sinks.log(MetricPoint(1, {}, {}))
    sinks.close()


def test_a_run_is_always_finished_even_when_logging_fails(
    gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = []

    class Run:
        def log(self, values: object) -> None:
            raise RuntimeError("full")

        def finish(self) -> None:
            finished.append(True)

    fake = SimpleNamespace(
        init=lambda **_: Run(), Settings=lambda **_: None, Table=lambda **_: None
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    settings = WandbSettings(folder=tmp_path)
    problem = report_stage(gate_report(gate), settings, name="d", round_id="r", folder=gate)
    assert problem == {"wandb_error": "RuntimeError: full"}
    assert finished == [True]


def test_without_the_package_the_remedy_is_named(
    gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    problem = report_stage(
        gate_report(gate), WandbSettings(folder=tmp_path), name="d", round_id="r", folder=gate
    )
    assert "pip install wandb" in problem["wandb_error"]


def flags(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return parser.parse_args(argv)


def test_flags_go_before_the_environment_and_that_before_defaults() -> None:
    environ = {"WANDB_PROJECT": "from-env", "WANDB_MODE": "offline", "WANDB_GROUP": "g"}
    found = settings_from(environ, flags("--wandb-project", "from-flag"))
    assert (found.project, found.mode, found.group) == ("from-flag", "offline", "g")
    plain = settings_from({}, flags())
    assert (plain.project, plain.mode, plain.privileged) == ("shopsimrl", "online", False)
    with pytest.raises(InputError, match="WANDB_MODE"):
        settings_from({"WANDB_MODE": "maybe"}, flags())


def test_use_wandb_is_zero_or_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="USE_WANDB"):
        training_sinks({"USE_WANDB": "yes"}, name="d", round_id="r", folder=tmp_path)
    assert training_sinks({}, name="d", round_id="r", folder=tmp_path)._sinks == []
