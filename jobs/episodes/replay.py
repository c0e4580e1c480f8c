"""Counterfactual replay: an episode's task again, with other chunks or another checkpoint, n times.

One ``python -m trainer evaluate run`` on one task, in a folder of its own, on the embedded engine
or on a served model. The random numbers are those of the experiment's seed, so replays of one
episode that differ in a chunk are paired (a server is asked with the same seeds where it takes
them). One that was interrupted continues where its files end when it is handed in again, which the
reconciler does (``left_over.py``).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.utils import timezone

from intraskill_web.core.text import storable_json
from intraskill_web.episodes.models import Replay
from intraskill_web.episodes.served import FILE, served_models
from intraskill_web.episodes.traces import printable
from intraskill_web.skills.models import Curriculum, SkillVersionChunk
from jobs.child import belonging
from jobs.layout import read_experiment, write_config
from trainer.cli.main import EXIT_INCOMPLETE
from trainer.config import EvaluateConfig, PolicyConfig, SkillsConfig, TaskConfig, WorldConfig
from trainer.engines.endpoint.served import check_served
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.lock import Held, exclusive
from trainer.rollout.traces import score
from trainer.skills.bank import load_bank, write_bank
from trainer.skills.types import Chunk

LOG_TAIL = 400


def run_replay(replay_id: int) -> None:
    """Play a replay and keep its outcomes. What goes wrong is kept in words; faults of ours are
    raised too.
    """
    replay = Replay.objects.select_related("episode__experiment", "episode__round").get(
        pk=replay_id
    )
    try:
        with exclusive(replay.workplace) as lock:
            _carry_out(replay, lock)
    except Held:
        return  # handed in twice: another job is playing it, and says how it ends
    except Exception as error:
        _end(replay, state="failed", error=f"{type(error).__name__}: {error}"[:500])
        raise


def _carry_out(replay: Replay, lock: int) -> None:
    if not replay.own.exclude(state="succeeded").update(state="running", error=""):
        return
    try:
        config = _prepare(replay)
        missing = _play(replay.folder, config, lock)
        outcomes = outcomes_of(replay.folder)
    except (InputError, OSError) as error:
        _end(replay, state="failed", error=str(error)[:500])
        return
    _end(replay, state="succeeded", outcomes=outcomes, error=missing[:500])


def _end(replay: Replay, **fields: Any) -> None:
    """What a server answered may stand in the words, so anything may."""
    kept = {name: storable_json(printable(value)) for name, value in fields.items()}
    replay.own.update(ended_at=timezone.now(), **kept)


def _prepare(replay: Replay) -> Path:
    """Bank and configuration in the replay's folder; returns the latter. Raises InputError."""
    policy, world = _policy(replay)
    skills = SkillsConfig()
    if replay.skill_ids:
        bank = _chunks(replay)
        unknown = [skill_id for skill_id in replay.skill_ids if skill_id not in bank]
        if unknown:
            raise InputError("are no chunks of the round's bank", field="chunks", value=unknown)
        shown = [chunk for skill_id, chunk in bank.items() if skill_id in replay.skill_ids]
        path = replay.folder / "skillbank.json"
        write_bank(path, shown, bank_version="replay", metadata={"replay": replay.pk})
        skills = SkillsConfig(provider="bank", bank=path)
    episode = replay.episode
    config = EvaluateConfig(
        stage="evaluate",
        name=f"replay-{replay.pk}",
        output_dir=replay.folder / "run",
        seed=episode.experiment.seed,
        world=world,
        policy=policy,
        tasks=TaskConfig(split=episode.split, ids=(episode.task_id,), repeats=replay.n),
        skills=skills,
    )
    path = replay.folder / "replay.yaml"
    write_config(path, config)
    return path


def _policy(replay: Replay) -> tuple[PolicyConfig, WorldConfig]:
    """Who plays in which shop. Raises InputError, also for a server that cannot be asked."""
    run = replay.episode.experiment.folder
    here = (run / "experiment.json").is_file()
    if not replay.served:
        ours = read_experiment(run)
        local = PolicyConfig(
            checkpoint=run / replay.checkpoint,
            temperature=ours.temperature,
            max_new_tokens=ours.max_new_tokens,
            threads=ours.threads,
        )
        return local, ours.world
    model = served_models().get(replay.served)
    if model is None:
        raise InputError("names no such server", file=Path(FILE), value=replay.served)
    if model.world is None and not here:
        raise InputError(
            "the run of this episode came without its shop",
            file=Path(FILE),
            field=f"servers.{replay.served}.world",
            remedy="Name profile, catalogue and splits there",
        )
    check_served(model.endpoint)
    named = model.endpoint.checkpoint_id or model.endpoint.model
    served = PolicyConfig(
        engine="endpoint",
        checkpoint=run,
        endpoint=model.endpoint.model_copy(update={"checkpoint_id": named}),
        temperature=model.temperature,
        max_new_tokens=model.max_new_tokens,
    )
    return served, model.world or read_experiment(run).world


def _chunks(replay: Replay) -> dict[str, Chunk]:
    """The bank of the episode's round by id, in its order: of its file, else of its rows."""
    episode = replay.episode
    if episode.round is None:
        raise InputError("the episode belongs to no round, so its bank is not known")
    file = episode.round.folder / "skillbank.json"
    if file.is_file():
        return {chunk.skill_id: chunk for chunk in load_bank(file).chunks}
    curriculum = Curriculum.objects.filter(round=episode.round_id).first()
    rows = SkillVersionChunk.objects.filter(version=curriculum.version_id if curriculum else None)
    found = rows.order_by("order").select_related("revision")
    return {
        row.revision.skill_id: Chunk(
            row.revision.skill_id, row.revision.content, row.revision.version
        )
        for row in found
    }


def _play(folder: Path, config: Path, lock: int) -> str:
    """Run the trainer; what is missing of the result, in words.

    Raises InputError with the end of its log when it fails, or when nothing could be scored.
    """
    log = folder / "replay.log"
    with log.open("wb") as handle:
        done = subprocess.run(
            [sys.executable, "-m", "trainer", "evaluate", "run", str(config)],
            stdout=handle, stderr=subprocess.STDOUT, check=False, **belonging(lock),
        )  # fmt: skip
    if done.returncode == EXIT_INCOMPLETE:
        played = list(last_traces(folder))
        errors = [trace["error"] for trace in played if trace.get("error")]
        if errors:
            said = f"{errors[-1].get('type')}: {errors[-1].get('message')}"
            if len(errors) < len(played):
                return f"{len(errors)} of {len(played)} failed technically. {said}"
            raise InputError(f"every episode failed technically. {said}")
    if done.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]
        raise InputError(f"the trainer ended with {done.returncode}: {tail.strip()}", file=log)
    return ""


def last_traces(folder: Path) -> Iterator[dict[str, Any]]:
    """The trace of each episode, in the order they were asked for; of several tries the last."""
    found = {t["job"]["sample_id"]: t for t in read_jsonl(folder / "run" / "traces.jsonl")}
    yield from (found[sample] for sample in sorted(found))


def outcomes_of(folder: Path) -> list[dict[str, Any]]:
    """What came of each episode, in the order they were asked for."""
    return [_outcome(trace) for trace in last_traces(folder)]


def _outcome(trace: dict[str, Any]) -> dict[str, Any]:
    reward = score(trace.get("final"))
    return {
        "reward": reward["reward"] if reward else None,
        "success": reward["r_success"] == 1.0 if reward else None,
        "turns": len(trace["steps"]),
        "termination": (trace.get("final") or {}).get("termination_reason") or "",
        "sample": trace["job"]["sample_id"],
    }
