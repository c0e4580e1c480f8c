"""Files → rows, while they are being written and once more at the end.

Files win: rows can be deleted and made again from them. Every reader remembers how far it came
(``IngestedFile``) in the transaction that wrote the rows, so nothing is read twice or left out,
and a file that was cut back after a crash is taken anew.
"""

from __future__ import annotations

from pathlib import Path

from intraskill_web.experiments.models import Round, Stage
from jobs.layout import RoundPlan
from jobs.mirror import evaluations, training

# folder of a round → what its episodes are for, and the arm
EVALUATIONS: dict[str, tuple[str, str]] = {
    "baseline/bare": ("baseline", "bare"),
    "baseline/full": ("baseline", "full"),
    "validate/bare": ("bare", "bare"),
    "validate/full": ("full", "full"),
    "gate": ("masked", "masked"),
    "gate/confirm/new": ("confirm", "new"),
    "gate/confirm/old": ("confirm", "old"),
    "gate/confirm/bare": ("confirm", "bare"),
    "test/bare": ("test", "bare"),
    "test/full": ("test", "full"),
}
FOLDERS = {
    "freeze": ("baseline/bare", "baseline/full"),
    "validate": ("validate/bare", "validate/full"),
    "gate": ("gate", "gate/confirm/new", "gate/confirm/old", "gate/confirm/bare"),
    "select": ("test/bare", "test/full"),
}


def follow(stage: Stage, plan: RoundPlan) -> None:
    """Bring the rows of one stage up to its files."""
    if stage.kind == "train":
        training.follow(stage.round, plan)
    for name in FOLDERS.get(stage.kind, ()):
        purpose, arm = EVALUATIONS[name]
        evaluations.follow(stage.round, plan.run, plan.folder / name, purpose=purpose, arm=arm)


def follow_round(round_: Round, plan: RoundPlan) -> None:
    """Bring all rows of a round up to its files."""
    for stage in round_.stages.all():
        follow(stage, plan)


def counted(path: Path, run: Path) -> str:
    """``path`` as rows name it."""
    return path.relative_to(run).as_posix()
