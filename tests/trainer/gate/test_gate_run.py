"""A whole published gate on the small shop, with a policy that reads its chunks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.gate.scripted import HARMS, HELPS, IDLE, ScriptedPolicy
from trainer.canonical import fingerprint
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, read_jsonl, write_json, write_jsonl
from trainer.gate.config import GateConfig
from trainer.gate.folder import MANIFEST
from trainer.gate.ledger import append_proposals
from trainer.gate.pool import Candidate, candidate_id, parse_pool, pool_document
from trainer.gate.run import open_gate
from trainer.rollout.evaluate import Evaluation, Execution, build_plan
from trainer.rollout.providers import NoSkills
from trainer.rollout.types import EpisodeJob
from trainer.shop.world import World, load_world
from trainer.skills.bank import parse_bank
from trainer.skills.curriculum_build import build_curriculum

TASKS = 240
Json = dict[str, Any]


@pytest.fixture(scope="module")
def world() -> World:
    return load_world("mini")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, world: World) -> Path:
    """A round folder with pool, ledger and bare run."""
    folder = tmp_path_factory.mktemp("round")
    bank = parse_bank(
        {
            "skills": [
                {"skill_id": name, "content": text, "metadata": {"estimated_effect": 0.1}}
                for name, text in (("helps", HELPS), ("harms", HARMS))
            ]
        }
    )
    candidates = [Candidate(candidate_id("ADD", None, IDLE), "ADD", None, IDLE)]
    pool = pool_document(
        round_id="round-000", proposal_checkpoint="scripted", bank=bank, candidates=candidates
    )
    write_json(folder / "analysis" / "candidate_pool.json", pool)
    write_jsonl(
        folder / "analysis" / "proposal_ledger.jsonl", append_proposals([], parse_pool(pool))
    )
    policy = ScriptedPolicy()
    plan = build_plan(
        world, policy, NoSkills(), split="val", task_ids=world.split("val")[:TASKS], seed=1
    )
    Evaluation(world, policy, NoSkills(), plan, Execution(batch_size=64)).run(folder / "bare")
    return folder


@pytest.fixture
def gate_dir(prepared: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    yield prepared / f"gate-{request.node.name[:60]}"


def settings(prepared: Path, out: Path, **changes: Any) -> GateConfig:
    return GateConfig(
        **{
            "stage": "gate",
            "name": "gate",
            "output_dir": out,
            "candidate_pool": prepared / "analysis" / "candidate_pool.json",
            "bare_run": prepared / "bare",
            "policy": {"checkpoint": prepared},
            "profile": "published",
            "seed": 1,
            "mask_seed": 2,
            "tasks": TASKS,
            "batch_size": 64,
            **changes,
        }
    )


def written(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def hashes(folder: Path) -> Json:
    return dict(read_json(folder / MANIFEST)["output"])


def test_a_gate_judges_chunks_by_what_they_do(prepared: Path, gate_dir: Path, world: World) -> None:
    manifest = open_gate(settings(prepared, gate_dir), world, ScriptedPolicy()).run()
    assert manifest["status"] == "complete"
    contributions = read_json(gate_dir / "contributions.json")
    rows = {row["intervention_id"]: row for row in contributions["contributions"]}
    assert rows["helps"]["status"] == "selected"
    assert rows["harms"]["status"] == "retired"
    assert contributions["observations"] == contributions["requested_observations"] == TASKS
    assert list(contributions["estimates"]) == sorted(contributions["estimates"])
    inference = {r["intervention_id"]: r for r in read_json(gate_dir / "inference.json")["rows"]}
    assert inference["helps"]["ci95"][0] > 0 > inference["harms"]["coefficient"]
    assert inference["helps"]["with_n"] + inference["helps"]["without_n"] == TASKS
    bank = read_json(gate_dir / "selected_skillbank.json")
    assert manifest["output"]["selected_skillbank_sha256"] == fingerprint(bank)
    assert bank["metadata"]["bare_baseline"]["run_dir"] == "bare"
    built = build_curriculum(
        parse_bank(bank), round_id="r", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    assert built.rho["helps"] == pytest.approx(0.9)
    ledger = list(read_jsonl(gate_dir / "proposal_ledger.jsonl"))
    assert len(ledger) == 1
    assert ledger[0]["validation_result"] in ("selected", "non_positive")
    assert read_json(gate_dir / "summary.json")["counts"]["completed"] == TASKS


def test_an_interrupted_gate_continues_to_the_same_documents(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    whole = gate_dir / "whole"
    config = settings(prepared, whole)
    open_gate(config, world, ScriptedPolicy()).run()
    cut = settings(prepared, gate_dir / "cut")
    with pytest.raises(KeyboardInterrupt):
        open_gate(cut, world, ScriptedPolicy(stop_after=1)).run()
    resumed = ScriptedPolicy()
    open_gate(cut, world, resumed).run()
    assert resumed.batches == 3
    assert hashes(cut.output_dir) == hashes(whole)


def test_a_finished_gate_plays_nothing_and_changes_nothing(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    config = settings(prepared, gate_dir)
    open_gate(config, world, ScriptedPolicy()).run()
    before = {file.name: file.stat().st_mtime_ns for file in gate_dir.iterdir()}
    again = ScriptedPolicy()
    open_gate(config, world, again).run()
    assert again.batches == 0
    assert {file.name: file.stat().st_mtime_ns for file in gate_dir.iterdir()} == before


def test_below_the_coverage_nothing_is_selected(prepared: Path, world: World) -> None:
    bare = prepared / "bare-cut"
    write_json(bare / "manifest.json", read_json(prepared / "bare" / "manifest.json"))
    traces = list(read_jsonl(prepared / "bare" / "traces.jsonl"))
    write_jsonl(bare / "traces.jsonl", traces[1:])
    strict = settings(prepared, prepared / "strict", bare_run=bare)
    with pytest.raises(IncompleteError, match="239 of 240"):
        open_gate(strict, world, ScriptedPolicy()).run()
    manifest = read_json(strict.output_dir / MANIFEST)
    assert (manifest["status"], manifest["output"]) == ("incomplete", None)
    assert not (strict.output_dir / "selected_skillbank.json").exists()
    loose = settings(prepared, prepared / "loose", bare_run=bare, min_coverage=0.95)
    manifest = open_gate(loose, world, ScriptedPolicy()).run()
    assert manifest["config"]["min_coverage"] == 0.95
    contributions = read_json(loose.output_dir / "contributions.json")
    assert contributions["dropped_episode_ids"] == [traces[0]["episode_id"]]


def test_a_rollout_that_fails_three_times_is_dropped_and_named(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    job = EpisodeJob.of(1, world.split("val")[5], 0, "val")
    config = settings(prepared, gate_dir, min_coverage=0.9)
    open_gate(config, world, ScriptedPolicy(fails=job.noise_key)).run()
    assert read_json(gate_dir / "contributions.json")["dropped_episode_ids"] == [job.episode_id]
    tries = [
        trace["status"]
        for trace in read_jsonl(gate_dir / "traces.jsonl")
        if trace["episode_id"] == job.episode_id
    ]
    assert tries == ["failed"] * 3


def test_a_missing_or_foreign_bare_run_fails_before_anything_is_played(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    for change in ({"bare_run": prepared / "nowhere"}, {"tasks": TASKS - 1}, {"seed": 3}):
        policy = ScriptedPolicy()
        with pytest.raises(InputError):
            open_gate(settings(prepared, gate_dir, **change), world, policy).run()
        assert policy.batches == 0
    policy = ScriptedPolicy(checkpoint="another")
    with pytest.raises(InputError, match=r"plan\.model"):
        open_gate(settings(prepared, gate_dir), world, policy).run()
    assert not gate_dir.exists()


def test_the_folder_of_another_run_is_left_as_it_was(prepared: Path, world: World) -> None:
    before = sorted(file.name for file in (prepared / "bare").iterdir())
    for profile in ("published", "standard"):
        config = settings(prepared, prepared / "bare", profile=profile)
        with pytest.raises(InputError, match="an evaluation that is no gate"):
            open_gate(config, world, ScriptedPolicy()).run()
    assert sorted(file.name for file in (prepared / "bare").iterdir()) == before


def test_an_unfinished_gate_is_left_as_it_was_by_another(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    with pytest.raises(KeyboardInterrupt):
        open_gate(settings(prepared, gate_dir), world, ScriptedPolicy(stop_after=1)).run()
    before = written(gate_dir)
    for change in ({"profile": "standard"}, {"mask_seed": 3}, {"active_skill_budget": 3}):
        with pytest.raises(InputError, match="another gate"):
            open_gate(settings(prepared, gate_dir, **change), world, ScriptedPolicy()).run()
    assert written(gate_dir) == before


def test_a_gate_without_anything_to_judge_selects_nothing(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    pool = pool_document(
        round_id="round-000",
        proposal_checkpoint="scripted",
        bank=parse_bank({"skills": []}),
        candidates=[],
    )
    file = gate_dir / "candidate_pool.json"
    write_json(file, pool)
    for profile in ("published", "standard"):
        config = settings(prepared, gate_dir / profile, candidate_pool=file, profile=profile)
        manifest = open_gate(config, world, ScriptedPolicy()).run()
        assert manifest["status"] == "complete"
        assert manifest["output"]["selected_chunk_ids"] == []


def test_a_damaged_output_is_written_again(prepared: Path, gate_dir: Path, world: World) -> None:
    config = settings(prepared, gate_dir)
    open_gate(config, world, ScriptedPolicy()).run()
    whole = hashes(gate_dir)
    for name in ("contributions.json", "selected_skillbank.json", "proposal_ledger.jsonl"):
        (gate_dir / name).write_text('{"torn":')
        again = ScriptedPolicy()
        open_gate(config, world, again).run()
        assert (again.batches, hashes(gate_dir)) == (0, whole)
    assert len(list(read_jsonl(gate_dir / "proposal_ledger.jsonl"))) == 1


def test_a_folder_cannot_be_continued_with_other_masks(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    open_gate(settings(prepared, gate_dir), world, ScriptedPolicy()).run()
    with pytest.raises(InputError, match="another gate"):
        open_gate(settings(prepared, gate_dir, mask_seed=3), world, ScriptedPolicy()).run()


def test_more_effects_than_tasks_are_refused_before_anything_is_played(
    prepared: Path, gate_dir: Path, world: World
) -> None:
    policy = ScriptedPolicy()
    with pytest.raises(InputError, match="cannot tell 3 effects apart"):
        open_gate(settings(prepared, gate_dir, tasks=3), world, policy).run()
    assert policy.batches == 0
