"""Evaluations of a published folder → scores of checkpoints, and comparisons of test arms.

Folders under ``artifacts/eval`` name split, checkpoint and skill (``…-test-iter80-free``). The
differences of test arms are computed again, task by task, from ``test_task_outcomes.json`` by the
published convention of the bootstrap.
"""

from __future__ import annotations

import re
from typing import Any

from intraskill_web.experiments.models import CheckpointScore, Experiment, Round
from jobs.imports.folder import PublishedFolder
from jobs.imports.report import Report
from trainer.compare.outcomes import arms_of_file
from trainer.compare.report import compare
from trainer.files import read_json, write_json

ARM = re.compile(r".*-(?P<split>test|val)-(?P<checkpoint>base|iter(?P<step>\d+))-(?P<skill>\w+)")
OUTCOMES = "test_task_outcomes.json"
COMPARISONS = "derived/comparisons.json"
PAIRS = (
    ("base_free", "iter80_free"),
    ("base_free", "base_s0"),
    ("iter80_free", "iter80_st"),
)


def publish_validation(round_: Round, folder: PublishedFolder, *, step: int) -> dict[str, Any]:
    """Bare and masked validation of a round's checkpoint, as its gate records them."""
    gate = folder.round(round_.number) / "gate"
    manifest = folder.json(gate / "online_gate_manifest.json")
    if manifest is None:
        return {}
    bare = manifest["input"]["bare_baseline"]
    arms = {
        "bare": (
            bare["observations"],
            bare["mean_outcomes"]["r_success"],
            bare["mean_outcomes"]["reward"],
        ),
        "masked": (
            manifest["summary"]["counts"]["scored"],
            manifest["summary"]["primary"]["success_rate"],
            manifest["summary"]["primary"]["reward_mean"],
        ),
    }
    outcome: dict[str, Any] = {}
    for arm, (n, success, reward) in arms.items():
        _score(round_, (step, "val", arm), (n, success, reward), folder.relative(gate))
        outcome |= {f"{arm}_n": n, f"{arm}_success": success, f"{arm}_reward": reward}
    return outcome


def publish_arms(experiment: Experiment, folder: PublishedFolder, report: Report) -> None:
    """A score for every evaluation whose folder names its arm; the test arms compared."""
    rounds = list(experiment.rounds.order_by("number"))
    summaries = sorted((folder.artifacts / "eval").glob("*/summary.json"))
    if not summaries:
        report.absent("artifacts/eval: no summary of an evaluation")
    for path in summaries:
        match = ARM.fullmatch(path.parent.name)
        if match is None or not rounds:
            continue
        step = int(match["step"] or 0)
        with report.part(folder.relative(path)):
            summary = read_json(path)
            primary = summary["primary"]
            _score(
                rounds[-1] if step else rounds[0],
                (step, match["split"], "bare" if match["skill"] == "free" else "full"),
                (summary["counts"]["scored"], primary["success_rate"], primary["reward_mean"]),
                folder.relative(path.parent),
            )
    _compare(folder, report)


def _score(
    round_: Round, key: tuple[int, str, str], values: tuple[int, float, float], path: str
) -> None:
    (step, split, arm), (n, success, reward) = key, values
    CheckpointScore.objects.update_or_create(
        experiment=round_.experiment,
        step=step,
        split=split,
        arm=arm,
        defaults={"round": round_, "n": n, "success": success, "reward": reward, "path": path},
    )


def _compare(folder: PublishedFolder, report: Report) -> None:
    """Write the comparisons of the arms that the outcomes hold."""
    path = folder.analysis / OUTCOMES
    if not path.is_file():
        report.absent(folder.relative(path))
        return
    with report.part(folder.relative(path)):
        known = read_json(path)[0]
        documents = [
            compare(*arms_of_file(path, pair)) for pair in PAIRS if all(a in known for a in pair)
        ]
        write_json(folder.root / COMPARISONS, documents)
