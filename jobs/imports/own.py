"""A run folder of our own → the rows that its stages would have published."""

from __future__ import annotations

from pathlib import Path

from intraskill_web.configs.uses import record_uses
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from jobs.documents import of_stage, save
from jobs.imports.report import Report
from jobs.layout import RoundPlan, read_experiment
from jobs.mirror import follow
from jobs.pipeline import PIPELINE, missing
from jobs.transitions import RoundState, State


def is_own(path: Path) -> bool:
    """Whether a folder is a run folder of ours."""
    return (path / "experiment.json").is_file()


def publish(experiment: Experiment, folder: Path, report: Report) -> None:
    """Rows of every round, stage by stage, up to the first that is not finished."""
    config = read_experiment(folder)
    experiment.engine, experiment.seed = config.engine, config.seed
    experiment.config = {**config.model_dump(mode="json"), "imported": "run folder"}
    rounds = sorted(path for path in folder.glob("round-[0-9][0-9][0-9]") if path.is_dir())
    experiment.rounds_planned = max(config.rounds, len(rounds))
    done = [_publish_round(experiment, RoundPlan(
        config=config, run=folder, number=int(path.name[-3:]), rounds=experiment.rounds_planned
    ), report) for path in rounds]  # fmt: skip
    finished = len(done) == experiment.rounds_planned and all(done)
    experiment.state = (RoundState.SUCCEEDED if finished else RoundState.STOPPED).value
    experiment.save()
    record_uses(experiment)


def _publish_round(experiment: Experiment, plan: RoundPlan, report: Report) -> bool:
    """Whether all of the round was there."""
    round_, _made = Round.objects.get_or_create(experiment=experiment, number=plan.number)
    stages = [Stage.objects.get_or_create(round=round_, kind=kind)[0] for kind in STAGE_ORDER]
    whole = True
    for stage in stages:
        with report.part(f"{plan.round_id}/{stage.kind}"):
            follow(stage, plan)
        lacking = missing(PIPELINE[stage.kind].yields(plan))
        if lacking and whole:
            for path in lacking:
                report.absent(path.relative_to(plan.run).as_posix())
        whole = whole and not lacking
        if not whole:
            continue
        with report.part(f"{plan.round_id}/{stage.kind}"):
            stage.outcome = PIPELINE[stage.kind].publish(stage, plan)
            stage.state = State.SUCCEEDED.value
            stage.save()
            save(of_stage(round_, plan, stage.kind))
    round_.state = (RoundState.SUCCEEDED if whole else RoundState.STOPPED).value
    round_.save()
    return whole
