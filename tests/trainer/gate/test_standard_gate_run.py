"""Whole standard gates on the small shop: one look, several looks, confirmation, resuming."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.gate.scripted import ScriptedPolicy
from tests.trainer.gate.test_gate_run import gate_dir, hashes, prepared, settings, world
from trainer.canonical import fingerprint
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, read_jsonl, write_json, write_jsonl
from trainer.gate.evaluations import load_run
from trainer.gate.folder import MANIFEST
from trainer.gate.refit import load_finished, refit
from trainer.gate.run import open_gate
from trainer.shop.world import World
from trainer.skills.bank import parse_bank
from trainer.skills.curriculum_build import build_curriculum

__all__ = ["gate_dir", "prepared", "world"]
Json = dict[str, Any]
FAST: Json = {"redraws": 200, "bootstrap": 200}


def standard(prepared: Path, out: Path, **changes: Any) -> Any:
    profile = {**FAST, **changes.pop("standard", {})}
    return settings(prepared, out, profile="standard", standard=profile, **changes)


@pytest.fixture(scope="module")
def finished(prepared: Path, world: World) -> Path:
    """A standard gate in one look."""
    config = standard(prepared, prepared / "standard")
    open_gate(config, world, ScriptedPolicy()).run()
    return config.output_dir


def test_a_standard_gate_adopts_keeps_and_retires_on_evidence(finished: Path) -> None:
    manifest = read_json(finished / MANIFEST)
    assert manifest["status"] == "complete"
    contributions = read_json(finished / "contributions.json")
    rows = {row["intervention_id"]: row for row in contributions["contributions"]}
    assert (rows["helps"]["decision"], rows["helps"]["status"]) == ("keep", "selected")
    assert (rows["harms"]["decision"], rows["harms"]["status"]) == ("retire", "retired")
    idle = next(row for name, row in rows.items() if name.startswith("online-"))
    assert (idle["decision"], idle["status"]) == ("reject", "not_adopted")
    assert rows["helps"]["ci95"][0] > 0 > rows["harms"]["coefficient"]
    assert rows["helps"]["p_randomisation"] < 0.02
    assert 0 < rows["helps"]["shrunk"] < rows["helps"]["coefficient"]
    assert rows["helps"]["decision_frequency"]["keep"] > 0.9
    bank = parse_bank(read_json(finished / "selected_skillbank.json"))
    assert [chunk.skill_id for chunk in bank.chunks] == ["helps"]
    built = build_curriculum(
        bank, round_id="r", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    assert built.rho["helps"] == pytest.approx(0.9)
    assert manifest["protocol"]["settings"]["retire_margin"] == 0.05


def test_pairs_are_complementary_balanced_and_shuffled(finished: Path) -> None:
    rows = read_json(finished / "mask_assignments.json")["assignments"]
    masks = np.array([row["mask"] for row in rows])
    assert (masks[::2] + masks[1::2] == 1).all()
    assert masks.mean(axis=0).tolist() == [0.5, 0.5, 0.5]
    both = [row["included_chunk_ids"][:2] for row in rows if sum(row["mask"]) == 3]
    assert len({tuple(order) for order in both}) > 1
    traces = {t["episode_id"]: t for t in read_jsonl(finished / "traces.jsonl")}
    for row in rows:
        shown = [s["skill_id"] for s in traces[row["episode_id"]]["selected_skills"]]
        assert shown == row["included_chunk_ids"]


def test_bare_rollouts_may_cover_a_part_of_the_tasks(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    bare = prepared / "bare-part"
    manifest = read_json(prepared / "bare" / "manifest.json")
    plan = {**manifest["plan"], "jobs": manifest["plan"]["jobs"][:50]}
    write_json(bare / "manifest.json", {"plan": plan, "plan_fingerprint": fingerprint(plan)})
    traces = list(read_jsonl(prepared / "bare" / "traces.jsonl"))
    write_jsonl(bare / "traces.jsonl", traces[:50])
    open_gate(standard(prepared, gate_dir, bare_run=bare), world, ScriptedPolicy()).run()
    contributions = read_json(gate_dir / "contributions.json")
    assert contributions["estimates"]["reward"]["bare_observations"] == 50
    assert contributions["bare_baseline"]["observations"] == 50
    assert read_json(gate_dir / "inference.json")["any_text"]["tasks"] == 50


def test_an_interrupted_standard_gate_continues_to_the_same_documents(
    prepared: Path, gate_dir: Path, world: World, finished: Path
) -> None:
    cut = standard(prepared, gate_dir)
    with pytest.raises(KeyboardInterrupt):
        open_gate(cut, world, ScriptedPolicy(stop_after=3)).run()
    open_gate(cut, world, ScriptedPolicy()).run()
    assert hashes(cut.output_dir) == hashes(finished)
    again = ScriptedPolicy()
    open_gate(cut, world, again).run()
    assert again.batches == 0


def test_several_looks_stop_decided_slots_and_are_all_recorded(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    config = standard(prepared, gate_dir, standard={"looks": 3})
    with pytest.raises(KeyboardInterrupt):
        open_gate(config, world, ScriptedPolicy(stop_after=4)).run()
    manifest = open_gate(config, world, ScriptedPolicy()).run()
    looks = manifest["looks"]
    assert [look["look"] for look in looks] == list(range(1, len(looks) + 1))
    assert sum(look["spent_share"] for look in looks) <= 1.0 + 1e-12
    assert looks[0]["spent_share"] < 0.02
    decided = next(number for number, look in enumerate(looks) if "helps" in look["decided"])
    for number in range(decided + 1, len(looks)):
        rows = read_json(gate_dir / "looks" / f"look-{number + 1:02d}" / "mask_assignments.json")
        assert {row["slot_states"]["helps"] for row in rows["assignments"]} == {"helps"}
    run = load_run(gate_dir)
    assert len(run.traces) == sum(look["tasks"] for look in looks) * 2
    table = read_json(gate_dir / "contributions.json")["observations_table"]
    assert {row["episode_id"] for row in table} == set(run.traces)
    statuses = {
        row["intervention_id"]: row["status"]
        for row in read_json(gate_dir / "contributions.json")["contributions"]
    }
    assert (statuses["helps"], statuses["harms"]) == ("selected", "retired")


def test_a_confirmation_plays_new_old_and_bare_on_tasks_set_aside(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    config = standard(prepared, gate_dir, standard={"confirm_tasks": 60})
    manifest = open_gate(config, world, ScriptedPolicy()).run()
    report = manifest["confirmation"]
    assert report["tasks"] == 60
    assert report["means"]["new"] > report["means"]["bare"]
    assert report["verdict"] in ("confirmed", "unclear")
    aside = {job["task_id"] for job in load_run(gate_dir / "confirm" / "new").jobs}
    judged = {job["task_id"] for job in load_run(gate_dir).jobs}
    assert len(aside) == 60 and not aside & judged


def test_a_refuted_selection_is_not_used(
    prepared: Path, gate_dir: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.gate.standard.confirm.verdict_of", lambda _: "refuted")
    config = standard(prepared, gate_dir, standard={"confirm_tasks": 60})
    open_gate(config, world, ScriptedPolicy()).run()
    rows = read_json(gate_dir / "contributions.json")["contributions"]
    assert [row["status"] for row in rows] == ["held", "held", "not_adopted"]


def test_half_a_pair_does_not_count(
    prepared: Path, gate_dir: Path, world: World, finished: Path
) -> None:
    shutil.copytree(finished, gate_dir)
    traces = [dict(trace) for trace in read_jsonl(gate_dir / "traces.jsonl")]
    traces[5] = {**traces[5], "status": "failed", "final": None}
    write_jsonl(gate_dir / "traces.jsonl", traces)
    with pytest.raises(IncompleteError, match="239 of 240 pairs"):
        open_gate(standard(prepared, gate_dir), world, ScriptedPolicy()).judge()
    loose = standard(prepared, gate_dir, min_coverage=0.9)
    judgement = open_gate(loose, world, ScriptedPolicy()).judge()
    assert len(judgement.contributions["dropped_episode_ids"]) == 2
    broken = [
        {**trace, "status": "failed", "final": None} if trace["job"]["sample_id"] else trace
        for trace in traces
    ]
    write_jsonl(gate_dir / "traces.jsonl", broken)
    with pytest.raises(InputError, match="no task has both of its masked rollouts"):
        open_gate(standard(prepared, gate_dir, min_coverage=0.0), world, ScriptedPolicy()).judge()


def test_a_standard_gate_can_be_refitted_by_both_profiles(finished: Path) -> None:
    gate = load_finished(finished)
    own = refit(gate)
    stored = read_json(finished / "contributions.json")
    assert own["largest_difference"] <= 1e-9
    assert own["selected_intervention_ids"] == stored["selected_intervention_ids"]
    for row, before in zip(own["contributions"], stored["contributions"], strict=True):
        assert (row["status"], row["decision"]) == (before["status"], before["decision"])
        assert row["se"] == pytest.approx(before["se"], abs=1e-12)
    published = refit(gate, profile="published")
    assert published["observations"] == 240
    assert published["contributions"][0]["status"] == "selected"
