"""Small traces of the right shape, for tests of reading them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def trace(
    task: int, *, sample: int = 0, success: bool = True, split: str = "val", **more: Any
) -> dict[str, Any]:
    """A completed evaluation episode of two turns."""
    reward = 1.0 if success else 0.25
    parts = {"r_type": 1.0, "r_att": reward, "r_option": reward, "r_price": 1.0}
    return {
        "schema_version": "shopsimrl-episode-v4",
        "episode_id": f"task-{task:06d}__sample-{sample:03d}",
        "status": "completed",
        "job": {"task_id": task, "sample_id": sample, "seed": 5, "split": split},
        "provenance": {"skills": {"provider": "none"}},
        "started_at": "2026-01-01T00:00:00+00:00",
        "duration_ms": 12.5,
        "reset": {"task_instruction": f"buy thing {task}", "user_persona": {}},
        "selected_skills": [],
        "steps": [
            {"step_index": 1, "action": None, "protocol_error": {"code": "x"}, "environment": None},
            {
                "step_index": 2,
                "action": "click[buy]",
                "environment": {"action_feedback": {"valid": False}},
            },
        ],
        "final": {
            "done": True,
            "reward": reward,
            "reward_detail": {
                **parts,
                "r_loose": reward,
                "r_strict": reward,
                "r_success": float(success),
            },
            "termination_reason": "purchase",
        },
        "error": None,
        "tokens": {"total": 90, "sampled": 17},
        **more,
    }


def training_trace(step: int, group: int, sample: int, *, retry: bool = False) -> dict[str, Any]:
    """A training episode that saw chunk ``a``; a failed one where ``sample`` is odd."""
    suffix = "-full-skill-retry" if retry else ""
    return trace(
        100 + group,
        sample=sample,
        success=sample % 2 == 0,
        split="train",
        episode_id=f"train-group-{group:09d}-sample-{sample:09d}{suffix}",
        selected_skills=[{"skill_id": "a", "content": "text", "version": "1"}],
        provenance={
            "skills": {"assignment": {"mode": "assisted", "skill_ids": ["a"]}},
        },
        training={
            "purpose": "retry" if retry else "train",
            "rollout_step": step,
            "group_index": group,
        },
    )


def group_line(step: int, group: int, samples: Sequence[int], *, admitted: bool) -> dict[str, Any]:
    """The line of a group whose advantages are ±0.5."""
    return {
        "step": step,
        "group_index": group,
        "task_id": 100 + group,
        "sample_indices": list(samples),
        "admitted": admitted,
        "advantages": [0.5 if s % 2 == 0 else -0.5 for s in samples] if admitted else None,
        "classification": "not_frontier",
    }


def write_step(folder: Path, step: int, traces: Sequence[dict[str, Any]]) -> None:
    """A step's compressed trace file."""
    path = folder / "steps" / f"step-{step:06d}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.writelines(json.dumps(item) + "\n" for item in traces)
