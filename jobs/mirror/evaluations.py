"""An evaluation's ``traces.jsonl`` → episode rows, batch by batch while it grows."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import CheckpointScore, Round
from jobs.mirror.episode_rows import episode_row
from jobs.mirror.lines import new_lines, place_of
from trainer.files import read_json

BATCH = 1000


def follow(round_: Round, run: Path, folder: Path, *, purpose: str, arm: str) -> int:
    """Make rows of all new whole traces; returns how many."""
    file = folder / "traces.jsonl"
    if not file.exists():
        return 0
    experiment, path = round_.experiment, file.relative_to(run).as_posix()
    made = 0
    while True:
        place = place_of(experiment, path)
        fresh = new_lines(file, place, limit=BATCH)
        if not fresh.rows and not fresh.bad and not fresh.restarted:
            return made
        rows = [
            episode_row(
                trace,
                experiment=experiment,
                round_=round_,
                purpose=purpose,
                arm=arm,
                path=path,
                line=line,
            )
            for line, _end, trace in fresh.rows
        ]
        with transaction.atomic():
            if fresh.restarted:
                Episode.objects.filter(experiment=experiment, path=path).delete()
            Episode.objects.bulk_create(rows, batch_size=BATCH)
            place.save()
        made += len(rows)


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
