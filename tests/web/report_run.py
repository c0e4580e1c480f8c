"""A small finished run on disk, every private place of it marked with a canary.

Shapes are those of docs/design/architecture.md; the gate is fitted for real from planted effects.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.web.traces import ChunkLine, make_trace
from trainer.canonical import fingerprint
from trainer.files import write_bytes, write_json, write_jsonl, write_text
from trainer.gate.artefacts import contributions_document, estimates
from trainer.gate.assignment import design_matrix, draw_assignments
from trainer.gate.pool import Candidate, candidate_id, parse_pool, pool_document
from trainer.gate.regression import least_squares
from trainer.gate.selection import select
from trainer.gate.slots import build_layout
from trainer.rollout.summary import summarise_traces
from trainer.skills.bank import parse_bank
from trainer.skills.curriculum import write_curriculum
from trainer.skills.curriculum_build import build_curriculum

CANARIES = (
    "canary-goal",
    "canary-purchase",
    "canary-persona",
    "canary-prompt",
    "canary-card",
    "canary-mechanism",
    "canary-path",
    "canary-key",
    "canary-observation",
    "canary-reasoning",
    "canary-error",
)
CHUNKS: list[ChunkLine] = [
    ("brand-first", "Put the preferred brand in the query", 0.06),
    ("next-page", "When no result fits, look at the next page", 0.04),
    ("hurry", "Save turns and buy at once", 0.01),
]
TASKS = 24
STEPS = 2
PARTS = ("r_att", "r_loose", "r_option", "r_price", "r_strict", "r_success", "r_type")


def write_run(folder: Path, *, rounds: int = 2, seed: int = 3) -> Path:
    """The run; the same arguments give the same bytes but for times."""
    repository = Path(__file__).resolve().parents[2]
    text = (repository / "configs/mini/quick.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text) | {"name": folder.name, "seed": seed, "rounds": rounds}
    config["train"] = config.get("train", {}) | {"steps": STEPS}
    config["start"] = {"skillbank": "/canary-path/s0.json", "checkpoint": "/canary-path"}
    config["gate"] = {"profile": "published", "active_skill_budget": 10}
    write_json(folder / "experiment.json", config)
    rng = random.Random(seed)
    bank = _bank(CHUNKS)
    for number in range(rounds):
        bank = _round(folder / f"round-{number:03d}", number, bank, rng, last=number + 1 == rounds)
    return folder


def _bank(lines: Sequence[ChunkLine]) -> dict[str, Any]:
    skills = [
        {
            "skill_id": name,
            "version": "1",
            "enabled": True,
            "content": f"### {title}\n\n- {name}",
            "metadata": {
                "title": title,
                "estimated_effect": effect,
                "evidence_card_ids": ["canary-card"],
            },
        }
        for name, title, effect in lines
    ]
    return {
        "schema_version": "shopsimrl-skillbank-v1",
        "bank_version": "s0",
        "metadata": {},
        "skills": skills,
    }


def _round(
    folder: Path, number: int, bank: dict[str, Any], rng: random.Random, *, last: bool
) -> dict[str, Any]:
    write_json(folder / "skillbank.json", bank)
    parsed = parse_bank(bank)
    curriculum = build_curriculum(
        parsed, round_id=folder.name, skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    write_curriculum(folder / "curriculum.json", curriculum)
    write_text(
        folder / "config" / "train.yaml",
        yaml.safe_dump(
            {
                "stage": "train",
                "name": folder.name,
                "seed": 3,
                "steps": STEPS,
                "output_dir": "/canary-path/train",
                "policy": {
                    "engine": "local",
                    "checkpoint": "/canary-path/c",
                    "endpoint": {"api_key": "canary-key"},
                },
            }
        ),
    )
    skill = 0.35 + 0.25 * number
    if number == 0:
        evaluation(folder / "baseline/bare", 0.3, rng, None)
        evaluation(folder / "baseline/full", 0.5, rng, bank)
    _training(folder / "train", number, skill, rng)
    evaluation(folder / "validate/bare", skill, rng, None)
    evaluation(folder / "validate/full", skill + 0.2, rng, bank)
    if last:
        evaluation(folder / "test/bare", skill, rng, None, split="test")
        evaluation(folder / "test/full", skill + 0.15, rng, bank, split="test")
    return _gate(folder, bank, rng)


def private(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace with a canary in every place that may not leave."""
    trace["reset"]["user_persona"] = {"user_id": "canary-persona", "brand": "canary-persona"}
    trace["conversation"][0]["content"] += " canary-prompt"
    trace["final"]["goal"]["title"] = "canary-goal"
    trace["final"]["purchase"]["title"] = "canary-purchase"
    trace["final"]["observation"] = "canary-observation"
    for step in trace["steps"]:
        step["observation"] = "canary-observation"
        step["model"]["reasoning"] = "canary-reasoning"
        step["model"]["content"] = "canary-reasoning"
    trace["provenance"]["environment"] = {"base_url": "http://canary-path/"}
    return trace


def evaluation(
    folder: Path, success: float, rng: random.Random, bank: Any, split: str = "val"
) -> None:
    """Traces, summary and manifest of one arm."""
    traces = []
    chunks = CHUNKS if bank else []
    for task in range(TASKS):
        name = f"task-{task:06d}__sample-000"
        won = rng.random() < success
        trace = private(make_trace(name, task, 0, chunks, success=won, split=split))
        trace["duration_ms"] = 12.0
        for step in trace["steps"]:
            step["model"]["usage"] = {"prompt_tokens": 9, "completion_tokens": rng.randrange(2, 7)}
        traces.append(trace)
    write_jsonl(folder / "traces.jsonl", traces)
    write_json(
        folder / "summary.json",
        {
            "schema_version": "shopsimrl-eval-summary-v2",
            "run_dir": "/canary-path",
            **summarise_traces(traces, requested=TASKS),
        },
    )
    skills = {"provider": "json_skillbank", "bank_sha256": fingerprint(bank)} if bank else {}
    write_json(
        folder / "manifest.json",
        {
            "plan": {
                "skills": skills,
                "runtime": {"max_steps": 11},
                "prompt": {"prompt_version": "v1"},
                "environment": {"profile": "mini", "base_url": "http://canary-path/"},
                "model": {"base_url": "http://canary-path/", "api_key": "canary-key"},
            }
        },
    )


def _training(folder: Path, number: int, success: float, rng: random.Random) -> None:
    groups, metrics, updates = [], [], []
    for step in range(number * STEPS + 1, (number + 1) * STEPS + 1):
        traces = []
        for group in range(4):
            wins = [rng.random() < success for _ in range(4)]
            for sample, won in enumerate(wins):
                name = f"train-group-{group:09d}-sample-{sample:09d}"
                trace = private(
                    make_trace(name, 500 + group, sample, [], success=won, split="train")
                )
                trace["duration_ms"] = 3.0
                traces.append(trace)
            wrong = not any(wins)
            groups.append(
                {
                    "step": step,
                    "group_index": group,
                    "task_id": 500 + group,
                    "rewards": [float(w) for w in wins],
                    "admitted": len(set(wins)) > 1,
                    "all_wrong": wrong,
                    "classification": "full_skill_failure_pending_analysis"
                    if wrong
                    else "not_frontier",
                }
            )
        text = "".join(json.dumps(t) + "\n" for t in traces)
        write_bytes(
            folder / "steps" / f"step-{step:06d}.jsonl.gz", gzip.compress(text.encode(), mtime=0)
        )
        metrics.append(
            {
                "step": step,
                "seconds": {"rollout": 1.0},
                "metrics": {
                    "rollout/shopsim/success_rate": success + 0.01 * step,
                    "rollout/shopsim/reward_mean": success,
                    "rollout/shopsim/skill_free_group_rate": 0.25,
                },
            }
        )
        updates += [
            {
                "update": 2 * step - 1 + i,
                "step": step,
                "groups": [0, 1],
                "seconds": 0.5,
                "metrics": {
                    "train/loss": 0.01 * i,
                    "train/ppo_kl": 0.002 * i,
                    "train/grad_norm": 1.0 + i,
                    "train/pg_clipfrac": 0.01 * i,
                    "train/entropy_loss": 0.2,
                },
            }
            for i in (0, 1)
        ]
    write_jsonl(folder / "groups.jsonl", groups)
    write_jsonl(folder / "metrics.jsonl", metrics)
    write_jsonl(folder / "updates.jsonl", updates)


def _gate(folder: Path, bank: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A published gate fitted for real: one candidate, planted effects, noise."""
    text = f"### Compare two products\n\n- {folder.name}"
    candidate = Candidate(
        candidate_id=candidate_id("ADD", None, text),
        operation="ADD",
        target_chunk_id=None,
        content=text,
        metadata={
            "title": "Compare two products",
            "evidence_card_ids": ["canary-card"],
            "failure_mechanism": "canary-mechanism",
        },
    )
    document = pool_document(
        round_id=folder.name, proposal_checkpoint="c", bank=parse_bank(bank), candidates=[candidate]
    )
    write_json(folder / "analysis/candidate_pool.json", document)
    write_jsonl(folder / "analysis/failure_cards.jsonl", [{"card_id": "canary-card"}])
    write_json(
        folder / "analysis/analysis_summary.json",
        {
            "triage_groups": 3,
            "triggers": {"all_wrong": 1, "low_mean": 2},
            "analyzed_cards": 3,
            "eligible_cards": 2,
            "candidates": 1,
            "evidence_only_card_ids": ["canary-card"],
            "candidate_pool_path": "/canary-path",
        },
    )
    pool = parse_pool(document)
    layout = build_layout(pool)
    rows = draw_assignments(
        layout, task_ids=range(TASKS), split="val", experiment_seed=3, mask_seed=11
    )
    masks = design_matrix(rows, layout.columns)
    bare = np.array([[float(rng.random() < 0.5)] * len(PARTS) + [0.0] for _ in rows])
    bare[:, -1] = bare[:, 4]
    planted = np.linspace(0.2, -0.1, masks.shape[1])
    masked = np.clip(bare + (masks @ planted)[:, None], 0.0, 1.0)
    outcomes = (*PARTS, "reward")
    fit = least_squares(masks, masked - bare)
    estimated = estimates(fit, layout.columns, outcomes, masked, bare)
    selection = select(layout, estimated["reward"]["coefficients"], 10)
    table = [
        {
            "episode_id": row.episode_id,
            "split": "val",
            "task_id": row.task_id,
            "sample_id": 0,
            "mask": [int(v) for v in masks[i]],
            "included_chunk_ids": list(row.included),
            "reward": float(masked[i, -1]),
            "bare_reward": float(bare[i, -1]),
            "reward_detail": dict(zip(PARTS, masked[i, :-1].tolist(), strict=True)),
            "bare_reward_detail": dict(zip(PARTS, bare[i, :-1].tolist(), strict=True)),
            "goal": "canary-goal",
        }
        for i, row in enumerate(rows)
    ]
    contributions = contributions_document(
        layout,
        selection,
        estimator={"name": "paired"},
        pool_sha256=pool.pool_sha256,
        assignment_sha256="0" * 64,
        requested=TASKS,
        dropped=[],
        budget=10,
        estimated=estimated,
        observations_table=table,
        bare_baseline={"run_dir": "/canary-path"},
    )
    write_json(folder / "gate/contributions.json", contributions)
    write_json(
        folder / "gate/online_gate_manifest.json",
        {
            "status": "complete",
            "config": {"output_dir": "/canary-path"},
            "output": {"selected_skillbank_sha256": "1" * 64},
        },
    )
    write_jsonl(
        folder / "gate/proposal_ledger.jsonl",
        [
            {
                "candidate_id": candidate.candidate_id,
                "operation": "ADD",
                "content": text,
                "source_card_ids": ["canary-card"],
                "failure_mechanism": "canary-mechanism",
            }
        ],
    )
    kept = [
        skill for skill in bank["skills"] if skill["skill_id"] in set(selection.selected)
    ] or bank["skills"][:1]
    made = {**bank, "bank_version": f"{folder.name}-selected", "skills": kept}
    write_json(folder / "gate/selected_skillbank.json", made)
    return made
