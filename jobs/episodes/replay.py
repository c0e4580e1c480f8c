"""Counterfactual replay: an episode's task again, with other chunks or another checkpoint, n times.

One ``python -m trainer evaluate run`` on one task, in a folder of its own. The random numbers are
those of the experiment's seed, so replays of one episode that differ in a chunk are paired. One
that was interrupted continues where its files end when it is handed in again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from intraskill_web.episodes.models import Replay
from jobs.layout import read_experiment, write_config
from trainer.config import EvaluateConfig, PolicyConfig, SkillsConfig, TaskConfig
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.rollout.traces import score
from trainer.skills.bank import load_bank, write_bank

LOG_TAIL = 400


def run_replay(replay_id: int) -> None:
    """Play a replay and keep its outcomes. What goes wrong is kept in words, not raised."""
    replay = Replay.objects.select_related("episode__experiment", "episode__round").get(
        pk=replay_id
    )
    Replay.objects.filter(pk=replay.pk).update(state="running", error="")
    try:
        config = _prepare(replay)
        _play(replay.folder, config)
        outcomes = outcomes_of(replay.folder)
    except (InputError, OSError) as error:
        _end(replay, state="failed", error=str(error)[:500])
        return
    _end(replay, state="succeeded", outcomes=outcomes)


def _end(replay: Replay, **fields: Any) -> None:
    Replay.objects.filter(pk=replay.pk).update(ended_at=timezone.now(), **fields)


def _prepare(replay: Replay) -> Path:
    """Bank and configuration in the replay's folder; returns the latter."""
    episode = replay.episode
    run = episode.experiment.folder
    settings_of_run = read_experiment(run)
    if episode.round is None:
        raise InputError("the episode belongs to no round, so its bank is not known")
    bank = load_bank(run / f"round-{episode.round.number:03d}" / "skillbank.json")
    known = {chunk.skill_id: chunk for chunk in bank.chunks}
    unknown = [skill_id for skill_id in replay.skill_ids if skill_id not in known]
    if unknown:
        raise InputError("are no chunks of the round's bank", field="chunks", value=unknown)
    skills = SkillsConfig()
    if replay.skill_ids:
        shown = [chunk for chunk in bank.chunks if chunk.skill_id in replay.skill_ids]
        path = replay.folder / "skillbank.json"
        write_bank(path, shown, bank_version=bank.bank_version, metadata={"replay": replay.pk})
        skills = SkillsConfig(provider="bank", bank=path)
    config = EvaluateConfig(
        stage="evaluate",
        name=f"replay-{replay.pk}",
        output_dir=replay.folder / "run",
        seed=settings_of_run.seed,
        world=settings_of_run.world,
        policy=PolicyConfig(
            checkpoint=run / replay.checkpoint,
            temperature=settings_of_run.temperature,
            max_new_tokens=settings_of_run.max_new_tokens,
            threads=settings_of_run.threads,
        ),
        tasks=TaskConfig(split=episode.split, ids=(episode.task_id,), repeats=replay.n),
        skills=skills,
    )
    path = replay.folder / "replay.yaml"
    write_config(path, config)
    return path


def _play(folder: Path, config: Path) -> None:
    """Run the trainer. Raises InputError with the end of its log when it fails."""
    log = folder / "replay.log"
    with log.open("wb") as handle:
        done = subprocess.run(
            [sys.executable, "-m", "trainer", "evaluate", "run", str(config)],
            cwd=settings.BASE_DIR, stdout=handle, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    if done.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]
        raise InputError(f"the trainer ended with {done.returncode}: {tail.strip()}", file=log)


def outcomes_of(folder: Path) -> list[dict[str, Any]]:
    """What came of each episode, in the order they were played; repeats of failed ones replace."""
    found: dict[int, dict[str, Any]] = {}
    for trace in read_jsonl(folder / "run" / "traces.jsonl"):
        reward = score(trace.get("final"))
        found[trace["job"]["sample_id"]] = {
            "reward": reward["reward"] if reward else None,
            "success": reward["r_success"] == 1.0 if reward else None,
            "turns": len(trace["steps"]),
            "termination": (trace.get("final") or {}).get("termination_reason") or "",
        }
    return [found[sample] for sample in sorted(found)]
