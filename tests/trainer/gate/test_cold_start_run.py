"""The gate of a draft as a stage: from the analyst's files to the first active bank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.trainer.gate.scripted import HARMS, HELPS, IDLE, ScriptedPolicy
from tests.trainer.gate.test_gate_run import TASKS, gate_dir, prepared, world
from trainer.canonical import fingerprint
from trainer.cli.main import main
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, read_jsonl, write_json, write_jsonl
from trainer.gate.config import ColdStartGateConfig
from trainer.gate.finished import load_finished
from trainer.gate.folder import COLD_START_MANIFEST
from trainer.gate.refit import refit
from trainer.gate.run import open_gate
from trainer.shop.world import World
from trainer.skills.bank import load_bank
from trainer.skills.curriculum_build import build_curriculum

__all__ = ["gate_dir", "prepared", "world"]
Json = dict[str, Any]
TEXTS = {"helps": HELPS, "harms": HARMS, "idle": IDLE}


def draft_of(texts: dict[str, str], budget: int | None = 2) -> Json:
    document: Json = {
        "schema_version": "shopsimrl-initial-skill-draft-v2",
        "chunks": [
            {"chunk_id": name, "draft_order": order, "title": f"Title {name}", "content": text}
            for order, (name, text) in enumerate(texts.items(), 1)
        ],
        "active_skill_budget": budget,
    }
    return {**document, "created_at": "now", "draft_sha256": fingerprint(document)}


def bank_of(draft: Json) -> Json:
    return {
        "metadata": {"active_skill_budget": draft["active_skill_budget"]},
        "skills": [
            {
                "skill_id": chunk["chunk_id"],
                "content": chunk["content"],
                "metadata": {"draft_only": True, "title": chunk["title"]},
            }
            for chunk in draft["chunks"]
        ],
    }


def settings(prepared: Path, out: Path, draft: Json | None = None, **changes: Any) -> Json:
    draft = draft or draft_of(TEXTS)
    folder = out.with_name(f"{out.name}-draft")
    write_json(folder / "initial_skill_draft.json", draft)
    write_json(folder / "initial_skillbank.json", changes.pop("bank", bank_of(draft)))
    return {
        "stage": "cold_start_gate",
        "name": "first",
        "output_dir": str(out),
        "draft": str(folder / "initial_skill_draft.json"),
        "draft_bank": str(folder / "initial_skillbank.json"),
        "bare_run": str(prepared / "bare"),
        "policy": {"checkpoint": str(prepared)},
        "seed": 1,
        "mask_seed": 2,
        "tasks": TASKS,
        "batch_size": 64,
        **changes,
    }


def config(*args: Any, **changes: Any) -> ColdStartGateConfig:
    return ColdStartGateConfig(**settings(*args, **changes))


def test_the_first_bank_holds_what_helps_and_is_no_draft_any_more(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    manifest = open_gate(config(prepared, gate_dir), world, ScriptedPolicy()).run()
    assert manifest["schema_version"] == "shopsimrl-trace2skill-gate-a-v2"
    assert manifest["status"] == "complete"
    assert manifest["input"]["draft_sha256"] == draft_of(TEXTS)["draft_sha256"]
    document = read_json(gate_dir / "contributions.json")
    assert document["schema_version"] == "shopsimrl-chunk-contributions-v2"
    rows = {row["chunk_id"]: row for row in document["contributions"]}
    assert list(rows) == list(TEXTS)
    assert [row["draft_order"] for row in rows.values()] == [1, 2, 3]
    assert rows["helps"]["status"] == "selected"
    assert rows["harms"]["status"] == "non_positive"
    assert rows["helps"]["title"] == "Title helps"
    assert rows["helps"]["rank"] == 1
    assert document["draft_sha256"] == manifest["input"]["draft_sha256"]
    lines = (gate_dir / "contributions.csv").read_text().splitlines()
    assert len(lines) == 4 and lines[1].startswith("helps,1,Title helps,")
    bank = load_bank(gate_dir / "selected_skillbank.json")
    assert bank.bank_version == "cold-start-gate-a-selected-v2"
    assert "draft_only" not in bank.chunks[0].metadata
    assert bank.metadata["bare_baseline"]["observations"] == TASKS
    built = build_curriculum(
        bank, round_id="round-000", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    assert built.rho["helps"] == pytest.approx(0.9)
    controls = [
        {chunk.skill_id for chunk in load_bank(gate_dir / f"{sign}_control_skillbank.json").chunks}
        for sign in ("positive", "negative")
    ]
    assert "helps" in controls[0] and "harms" in controls[1] and not controls[0] & controls[1]
    masks = read_json(gate_dir / "mask_assignments.json")
    assert masks["schema_version"] == "shopsimrl-chunk-mask-assignments-v1"
    assert manifest["input"]["assignment_sha256"] == masks["assignment_sha256"]


def test_a_cut_short_gate_continues_and_an_ended_one_plays_nothing(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    whole = config(prepared, gate_dir / "whole")
    cut = config(prepared, gate_dir / "cut")
    expected = open_gate(whole, world, ScriptedPolicy()).run()["output"]
    with pytest.raises(KeyboardInterrupt):
        open_gate(cut, world, ScriptedPolicy(stop_after=2)).run()
    assert open_gate(cut, world, ScriptedPolicy()).run()["output"] == expected
    (gate_dir / "cut" / "contributions.csv").unlink()
    again = ScriptedPolicy()
    assert open_gate(cut, world, again).run()["output"] == expected
    assert again.batches == 0
    assert (gate_dir / "cut" / "contributions.csv").exists()


def test_a_draft_gate_can_be_fitted_again(
    prepared: Path, gate_dir: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    open_gate(config(prepared, gate_dir), world, ScriptedPolicy()).run()
    report = refit(load_finished(gate_dir))
    assert report["largest_difference"] == 0.0
    statuses = [row["status"] for row in report["contributions"]]
    assert statuses == [row["original_status"] for row in report["contributions"]]
    assert main(["gate", "fit", str(gate_dir), "--json"]) == 0
    document = read_json(gate_dir / "contributions.json")
    document["contributions"][0]["coefficient"] = 0.5
    write_json(gate_dir / "contributions.json", document)
    assert main(["gate", "fit", str(gate_dir), "--json"]) == 2
    assert "contributions_sha256: does not match" in capsys.readouterr().err


def test_too_few_pairs_select_nothing(prepared: Path, gate_dir: Path, world: World) -> None:
    bare = gate_dir / "bare"
    write_json(bare / "manifest.json", read_json(prepared / "bare" / "manifest.json"))
    write_jsonl(bare / "traces.jsonl", list(read_jsonl(prepared / "bare" / "traces.jsonl"))[1:])
    strict = config(prepared, gate_dir / "gate", bare_run=str(bare))
    with pytest.raises(IncompleteError, match="239 of 240"):
        open_gate(strict, world, ScriptedPolicy()).run()
    manifest = read_json(gate_dir / "gate" / COLD_START_MANIFEST)
    assert (manifest["status"], manifest["output"]) == ("incomplete", None)


def broken(**changes: Any) -> Json:
    return {**draft_of(TEXTS), "draft_sha256": None, **changes}


@pytest.mark.parametrize(
    "case",
    [
        (broken(schema_version="x"), {}, "schema_version"),
        (broken(draft_sha256="0"), {}, "does not match the content"),
        (broken(chunks=draft_of({"helps": HELPS, "idle": IDLE})["chunks"]), {}, "other chunks"),
        (broken(chunks=draft_of({**TEXTS, "idle": "?"})["chunks"]), {}, "not the text"),
        (
            broken(chunks=[{**c, "draft_order": 1} for c in draft_of(TEXTS)["chunks"]]),
            {},
            "no gaps",
        ),
        (broken(), {"active_skill_budget": 3}, "all places must agree"),
        (broken(active_skill_budget=4), {}, "must be at most 3"),
    ],
)
def test_a_draft_that_does_not_fit_its_bank_is_refused_before_anything_is_played(
    prepared: Path, gate_dir: Path, world: World, case: tuple[Json, Json, str]
) -> None:
    draft, changes, match = case
    given = config(prepared, gate_dir, draft, bank=bank_of(draft_of(TEXTS)), **changes)
    policy = ScriptedPolicy()
    with pytest.raises(InputError, match=match):
        open_gate(given, world, policy).run()
    assert policy.batches == 0 and not gate_dir.exists()


def test_the_command_takes_a_cold_start_configuration_and_check_knows_it(
    prepared: Path, gate_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = settings(prepared, gate_dir)
    file = gate_dir.with_suffix(".yaml")
    file.write_text(yaml.safe_dump({**good, "candidate_pool": "x"}))
    assert main(["gate", "run", str(file)]) == 2
    assert "candidate_pool" in capsys.readouterr().err
    file.write_text(yaml.safe_dump(good))
    assert main(["check", str(file), "--json"]) == 1  # the scripted policy is no checkpoint
    checks = {c["name"]: c for c in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["draft"]["ok"] and "3 chunks, of which 2" in checks["draft"]["detail"]
