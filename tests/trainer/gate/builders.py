"""Small pools and evaluation folders for gate tests, in the shapes of the specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.canonical import episode_seed, fingerprint
from trainer.files import write_json, write_jsonl
from trainer.gate.assignment import Assignment
from trainer.gate.pool import Candidate, CandidatePool, candidate_id, parse_pool, pool_document
from trainer.skills.bank import parse_bank

SEED = 20260830
Json = dict[str, Any]


def pool_of(
    current: Sequence[str] = ("a", "b"),
    rewrites: Mapping[str, Sequence[str]] | None = None,
    additions: Sequence[str] = (),
) -> CandidatePool:
    """A pool whose chunks are named and whose candidates are given by their texts."""
    return parse_pool(pool_json(current, rewrites, additions))


def pool_json(
    current: Sequence[str] = ("a", "b"),
    rewrites: Mapping[str, Sequence[str]] | None = None,
    additions: Sequence[str] = (),
) -> Json:
    bank = parse_bank(
        {
            "skills": [
                {"skill_id": name, "content": f"text {name}", "metadata": {"estimated_effect": 0.1}}
                for name in current
            ]
        }
    )
    candidates = [
        Candidate(candidate_id("REWRITE", target, text), "REWRITE", target, text)
        for target, texts in (rewrites or {}).items()
        for text in texts
    ]
    candidates += [
        Candidate(candidate_id("ADD", None, text), "ADD", None, text) for text in additions
    ]
    return pool_document(
        round_id="round-000",
        proposal_checkpoint="checkpoint",
        bank=bank,
        candidates=candidates,
    )


def plan_of(task_ids: Sequence[int], skills: Json | None = None) -> Json:
    return {
        "pipeline_version": "test",
        "model": {
            "provider": "local",
            "checkpoint_id": "round-000-checkpoint",
            "sampling": {"temperature": 1.0, "send_seed": True},
            "transport": {"timeout_seconds": 1},
        },
        "task_split": {"name": "val", "source_path": "/here", "task_count": len(task_ids)},
        "jobs": [job_of(task_id) for task_id in task_ids],
        "environment": {"adapter": "test", "persona": True},
        "runtime": {"max_steps": 30, "concurrency": 4, "action_protocol": "v3"},
        "prompt": {"prompt_version": "v2", "system_prompt_sha256": "00"},
        "skills": skills or {"provider": "none"},
    }


def job_of(task_id: int) -> Json:
    return {
        "task_id": task_id,
        "sample_id": 0,
        "seed": episode_seed(SEED, task_id, 0),
        "split": "val",
    }


def trace_of(
    plan: Json, task_id: int, reward: float, shown: Sequence[str] = (), *, done: bool = True
) -> Json:
    success = float(reward == 1.0)
    return {
        "schema_version": "shopsimrl-episode-v4",
        "episode_id": f"task-{task_id:06d}__sample-000",
        "status": "completed" if done else "failed",
        "job": job_of(task_id),
        "provenance": {
            "model": plan["model"],
            "environment": {**plan["environment"], "observed": "x"},
            "prompt": plan["prompt"],
            "runtime": plan["runtime"],
            "skills": plan["skills"],
        },
        "selected_skills": [{"skill_id": name} for name in shown],
        "final": {
            "done": True,
            "reward": reward,
            "reward_detail": {"r_strict": reward, "r_success": success, "r_type": 1.0},
        }
        if done
        else None,
    }


def write_run(folder: Path, plan: Json, traces: Sequence[Json]) -> Path:
    write_json(folder / "manifest.json", {"plan_fingerprint": fingerprint(plan), "plan": plan})
    write_jsonl(folder / "traces.jsonl", traces)
    return folder


def bare_run(
    folder: Path, task_ids: Sequence[int], reward: Callable[[int], float] = lambda _: 0.5
) -> Path:
    plan = plan_of(task_ids)
    return write_run(folder, plan, [trace_of(plan, task, reward(task)) for task in task_ids])


def masked_run(
    folder: Path, rows: Sequence[Assignment], reward: Callable[[Assignment], float]
) -> Path:
    plan = plan_of(
        [row.task_id for row in rows], {"provider": "assigned_json_skillbank", "bank": "x"}
    )
    traces = [trace_of(plan, row.task_id, reward(row), row.included) for row in rows]
    return write_run(folder, plan, traces)
