"""Files → rows, while they are being written and once more at the end.

Files win: rows can be deleted and made again from them. Every reader remembers how far it came
(``IngestedFile``) in the transaction that wrote the rows, so nothing is read twice or left out,
and a file that was cut back after a crash is taken anew.
"""

from __future__ import annotations

from intraskill_web.experiments.models import Stage
from jobs.layout import RoundPlan
from jobs.mirror import evaluations, training
from jobs.mirror.folders import EVALUATIONS, FOLDERS


def follow(stage: Stage, plan: RoundPlan) -> None:
    """Bring the rows of one stage up to its files."""
    if stage.kind == "train":
        training.follow(stage.round, plan)
    for name in FOLDERS.get(stage.kind, ()):
        purpose, arm = EVALUATIONS[name]
        evaluations.follow(stage.round, plan.run, plan.folder / name, purpose=purpose, arm=arm)
