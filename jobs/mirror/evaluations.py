"""An evaluation's ``traces.jsonl`` → episode rows, batch by batch while it grows."""

from __future__ import annotations

from pathlib import Path

from intraskill_web.experiments.models import CheckpointScore, Round
from jobs.episodes.take import Source, follow_file
from trainer.files import read_json


def follow(round_: Round, run: Path, folder: Path, *, purpose: str, arm: str) -> int:
    """Make rows of all new whole traces; returns how many."""
    file = folder / "traces.jsonl"
    if not file.exists():
        return 0
    path = file.relative_to(run).as_posix()
    source = Source(file, path, round_id=round_.pk, purpose=purpose, arm=arm)
    return follow_file(round_.experiment, source)


def record_score(round_: Round, run: Path, folder: Path, *, step: int, arm: str) -> CheckpointScore:
    """The checkpoint's score from the evaluation's summary. Raises InputError without one."""
    summary = read_json(folder / "summary.json")
    split = read_json(folder / "manifest.json")["plan"]["task_split"]["name"]
    primary, counts = summary["primary"], summary["counts"]
    score, _made = CheckpointScore.objects.update_or_create(
        experiment=round_.experiment,
        step=step,
        split=split,
        arm=arm,
        defaults={
            "round": round_,
            "n": counts["scored"],
            "success": primary["success_rate"],
            "reward": primary["reward_mean"],
            "path": folder.relative_to(run).as_posix(),
        },
    )
    return score
