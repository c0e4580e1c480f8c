"""Standard gates as rows and pages: pairs, looks, confirmation, and what no bare run can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Experiment, Round
from intraskill_web.gates.health import checks, sound
from intraskill_web.gates.models import GateRun
from intraskill_web.gates.publish import publish_gate
from jobs import documents, mirror
from jobs.layout import Command, RoundPlan
from jobs.plans import plan_of
from jobs.stages import gate as gate_stage
from jobs.watch import read_progress
from tests.trainer.gate.scripted import ScriptedPolicy
from tests.trainer.gate.test_gate_run import prepared, settings, world
from trainer.experiment_config import EvaluationSettings, GateSettings
from trainer.files import read_json
from trainer.gate.run import open_gate
from trainer.gate.standard.settings import StandardSettings
from trainer.rollout.evaluate import Evaluation, build_plan
from trainer.rollout.providers import NoSkills
from trainer.shop.world import World

__all__ = ["prepared", "world"]
TASKS, ASIDE = 120, 20


def played(prepared: Path, world: World, name: str, bare: Path, **standard: Any) -> Path:
    config = settings(
        prepared,
        prepared / name / "gate",
        bare_run=bare,
        tasks=TASKS,
        profile="standard",
        standard={"redraws": 100, "bootstrap": 100, **standard},
    )
    open_gate(config, world, ScriptedPolicy()).run()
    (prepared / name / "analysis").symlink_to(prepared / "analysis")
    return config.output_dir


@pytest.fixture(scope="module")
def in_looks(prepared: Path, world: World) -> Path:
    """A gate in three looks with a confirmation."""
    return played(prepared, world, "looks", prepared / "bare", looks=3, confirm_tasks=ASIDE)


@pytest.fixture(scope="module")
def without_bare(prepared: Path, world: World) -> Path:
    """A gate none of whose tasks was played bare."""
    policy = ScriptedPolicy()
    plan = build_plan(
        world, policy, NoSkills(), split="val", task_ids=world.split("val")[300:310], seed=1
    )
    Evaluation(world, policy, NoSkills(), plan).run(prepared / "elsewhere")
    return played(prepared, world, "unpaired", prepared / "elsewhere")


@pytest.fixture
def round_(experiment: Experiment) -> Round:
    return new_round(experiment, 0)


def published(round_: Round, folder: Path) -> GateRun:
    return publish_gate(round_, folder, run=folder.parents[1])


def test_observations_are_counted_in_pairs(round_: Round, in_looks: Path) -> None:
    gate = published(round_, in_looks)
    table = read_json(in_looks / "contributions.json")["observations_table"]
    assert gate.profile == "standard"
    assert gate.observations == gate.requested == len(table) // 2 <= TASKS - ASIDE
    assert gate.summary["masked_n"] == len(table)
    assert gate.summary["confirmation"]["tasks"] == ASIDE
    assert len(gate.summary["looks"]) > 1


def test_a_slot_that_an_early_look_fixed_is_not_lopsided(round_: Round, in_looks: Path) -> None:
    gate = published(round_, in_looks)
    rows = list(gate.contributions.all())
    uneven = [row for row in rows if row.with_n != row.without_n]
    assert uneven, "a slot was fixed"
    for row in uneven:
        shown, hidden = gate.summary["randomised"][row.intervention_id]
        assert shown == hidden > 0
    assert {check.key: check.ok for check in checks(gate, rows)}["balance"] is True
    assert sound(gate, rows)


def test_pages_show_every_standard_status(
    round_: Round, in_looks: Path, viewer_client: Client
) -> None:
    gate = published(round_, in_looks)
    for status, row in zip(
        ("selected", "held", "not_adopted"), gate.contributions.order_by("order"), strict=True
    ):
        row.status = status
        row.save()
    path = f"/experiments/{round_.experiment.name}/rounds/0/gate/"
    text = viewer_client.get(path).content.decode()
    for word in ("Selected", "Held", "Not adopted", "on evidence only"):
        assert word in text
    assert "by sign and rank" not in text
    chinese = viewer_client.get(path, headers={"accept-language": "zh-hans"}).content.decode()
    for word in ("暂留", "未采纳", "候选凭证据进入"):
        assert word in chinese


def test_a_gate_without_bare_rollouts_has_no_difference_and_still_shows(
    round_: Round, without_bare: Path, viewer_client: Client
) -> None:
    gate = published(round_, without_bare)
    assert (gate.bare_mean, gate.delta_mean, gate.delta_low) == (None, None, None)
    assert gate.summary["bare_n"] == 0
    text = viewer_client.get(
        f"/experiments/{round_.experiment.name}/rounds/0/gate/"
    ).content.decode()
    assert "no task of the gate was played bare" in text
    assert "Contribution of each intervention" in text
    assert viewer_client.get("/gates/").status_code == 200


def test_fewer_pairs_than_planned_are_sound_when_the_settings_allow_it(
    round_: Round, in_looks: Path
) -> None:
    gate = published(round_, in_looks)
    gate.observations = gate.requested - 1
    rows = list(gate.contributions.all())
    assert not sound(gate, rows)
    gate.summary["min_coverage"] = 0.9
    assert sound(gate, rows)


def test_masked_and_confirming_episodes_become_rows_and_documents(
    round_: Round, in_looks: Path
) -> None:
    plan = plan_of(round_)
    plan.folder.mkdir(parents=True)
    (plan.folder / "gate").symlink_to(in_looks)
    stage = round_.stages.get(kind="gate")
    mirror.follow(stage, plan)
    masked = Episode.objects.filter(purpose="masked")
    assert masked.count() == len(read_json(in_looks / "contributions.json")["observations_table"])
    confirming = Episode.objects.filter(purpose="confirm")
    assert sorted(confirming.values_list("arm", flat=True)) == sorted(
        ["bare", "new", "old"] * ASIDE
    )
    kinds = {document.kind for document in documents.of_stage(round_, plan, "gate")}
    assert kinds >= {"looks", "confirmation", "masked", "contributions"}


def test_a_gate_in_looks_tells_its_progress_in_its_own_folder(in_looks: Path) -> None:
    progress = read_json(in_looks / "progress.json")
    looks = read_json(in_looks / "contributions.json")["observations"]
    assert progress["done"] == progress["total"] == looks + 3 * ASIDE
    assert not (in_looks / "looks" / "look-01" / "progress.json").exists()


def commands(plan: RoundPlan, **gate: Any) -> tuple[Command, ...]:
    config = plan.config.model_copy(
        update={
            "gate": GateSettings(**gate),
            "evaluation": EvaluationSettings(bare_tasks=40),
        }
    )
    return gate_stage.commands(RoundPlan(config, plan.run, 0, 1))


def test_the_stage_hands_all_settings_on_and_expects_the_right_number_of_rollouts(
    round_: Round,
) -> None:
    plan = plan_of(round_)
    [published_gate] = commands(plan, profile="published", min_coverage=0.9)
    [part] = published_gate.parts
    assert (part.expected, part.config.tasks, part.config.min_coverage) == (40, 40, 0.9)  # type: ignore[attr-defined]
    standard = StandardSettings(looks=2, confirm_tasks=10)
    [standard_gate] = commands(plan, tasks=30, standard=standard)
    [part] = standard_gate.parts
    assert (part.expected, part.config.tasks) == (2 * 20 + 3 * 10, 30)  # type: ignore[attr-defined]
    assert part.config.standard == standard  # type: ignore[attr-defined]
    reading = read_progress([standard_gate])
    assert reading is None
