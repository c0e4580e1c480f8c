"""The published run, imported: every figure of its artefacts in rows, exact, nothing made up."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.ledger.models import Candidate
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from intraskill_web.skills.models import Curriculum
from jobs.imports import run
from jobs.imports.folder import PublishedFolder
from jobs.imports.hashes import rebuilt_design
from jobs.imports.report import Report
from jobs.verify import verify
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.gate.artefacts import contributions_document, estimates
from trainer.gate.regression import least_squares
from trainer.gate.selection import select

STATES = [
    "49ac001d2e041be7a0dd717e4473b6a98529edef55f4d69bc06ce120307ce5a3",
    "747223fbeca202a01a735b99fc578cc12b45a00709948e49b5dc841755fc4236",
    "36b65614390862ece495d46d23626f7bf2d8e1ae74c806dace646309d587f816",
    "1f318d07f5b0e16d5a9cdf593889ee88f6bfd2c14ec3ca36eae5992282b6f792",
]
HASHES = [
    (
        "692abcce70e1a0e4544cf899e6a5cf5baef63c1048dc1c0e7b859788ee97c54b",
        "70bdd0d81a0ca873be3639f3afffebce615da781ca206f196523977955bbf71d",
    ),
    (
        "a6b930a73f63472e8b2857c5201f7d3506f190f3f979aa0f9cd866e61d0ea6c6",
        "bdd89685e3b8dc32ce83053f06ced513f911fb92212d800ac0291cea758a7c16",
    ),
    (
        "3a7ea9ae2650b10cfe62c255b22b0884934f3521cc3d8966d37981cf681bc35b",
        "b3e740e122374803eb7209002f0f268f89ae6a5b0f5099de01b826de11f7628f",
    ),
]
INTERVALS = [
    ("base_free", "iter80_free", "r_success", 0.325, (0.275, 0.375)),
    ("base_free", "iter80_free", "reward", 0.3078928571, (0.2597261161, 0.3575598958)),
    ("base_free", "base_s0", "r_success", 0.0275, (-0.015, 0.0725)),
    ("base_free", "base_s0", "reward", 0.0241345899, (-0.0178220073, 0.0664590526)),
    ("iter80_free", "iter80_st", "r_success", 0.02, (-0.005, 0.0475)),
    ("iter80_free", "iter80_st", "reward", 0.0170833333, (-0.0091666667, 0.04375)),
]


@pytest.fixture(scope="module")
def result(
    published: Path,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: object,
) -> Iterator[dict[str, Any]]:
    """The import, once for the module, in a home of its own."""
    before = settings.INTRASKILL_HOME
    settings.INTRASKILL_HOME = tmp_path_factory.mktemp("home")
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        yield run.import_run(published, "published")
        transaction.set_rollback(True)
    settings.INTRASKILL_HOME = before


@pytest.fixture
def experiment(result: dict[str, Any], db: None) -> Experiment:
    return Experiment.objects.get(name="published")


def test_it_counts_what_it_read_and_finds_every_hash_right(result: dict[str, Any]) -> None:
    counted = {k: v for k, v in result.items() if k not in ("missing", "verified", "mismatched")}
    assert counted == {
        "experiment": "published",
        "rounds": 4,
        "skill_versions": 5,
        "contributions": 52,
        "candidates": 22,
        "episodes": 0,
    }
    assert result["mismatched"] == []
    assert result["verified"] > 100
    assert "artifacts/round-003/gate/selected_skillbank.json" in result["missing"]
    assert "artifacts/round-000/gate/contributions.json" in result["missing"]


def test_all_coefficients_ranks_and_statuses_are_the_published_ones(
    published: Path, experiment: Experiment
) -> None:
    path = published / "artifacts/analysis/chunk_contributions.csv"
    with path.open(encoding="utf-8", newline="") as handle:
        stored = [
            (
                int(row["round"]),
                row["intervention_id"],
                float(row["coefficient"]),
                int(row["rank"]) if row["rank"] else None,
                row["status"],
            )
            for row in csv.DictReader(handle)
        ]
    rows = Contribution.objects.filter(gate__round__experiment=experiment)
    made = rows.order_by("gate__round__number", "order").values_list(
        "gate__round__number", "intervention_id", "coefficient", "rank", "status"
    )
    assert list(made) == stored
    assert len(stored) == 52


def test_banks_shrink_and_grow_as_published(experiment: Experiment) -> None:
    versions = experiment.skill_versions.order_by("number")
    assert [version.entries.count() for version in versions] == [10, 7, 5, 8, 8]
    last = list(versions)[-1].entries.select_related("revision")
    unknown = {e.revision.skill_id for e in last if e.revision.version == "unpublished"}
    assert unknown == {"chunk-1f8d27322e9f", "online-ebb64d6b2cfaaa2a"}


def test_curricula_have_their_state_ids_the_absent_one_derived(experiment: Experiment) -> None:
    found = Curriculum.objects.filter(round__experiment=experiment).order_by("round__number")
    assert [curriculum.state_id for curriculum in found] == STATES
    assert {curriculum.q for curriculum in found} == {0.2}


def test_gates_have_their_hashes_means_and_masks(experiment: Experiment) -> None:
    gates = list(GateRun.objects.filter(round__experiment=experiment).order_by("round__number"))
    assert [(g.pool_sha256, g.assignment_sha256) for g in gates[:3]] == HASHES
    assert (gates[0].bare_mean, gates[0].masked_mean) == (0.765952380952381, 0.7916607142857143)
    assert gates[0].delta_mean == pytest.approx(0.0257083333, abs=1e-10)
    assert [g.observations for g in gates] == [400, 400, 400, 0]
    conditions = [g.summary["design"]["condition_number"] for g in gates[:3]]
    assert conditions == pytest.approx([6.25, 4.53, 5.01], abs=0.005)
    assert gates[3].delta_mean is None
    first = gates[0].contributions.first()
    assert first is not None
    assert first.with_n + first.without_n == 400


def test_test_arms_and_their_differences_are_exact(experiment: Experiment) -> None:
    scores = CheckpointScore.objects.filter(experiment=experiment, split="test")
    assert {(s.step, s.arm): (s.success, s.reward) for s in scores} == {
        (0, "bare"): (0.5175, 0.5421666666666667),
        (0, "full"): (0.545, 0.5663012566137566),
        (80, "bare"): (0.8425, 0.8500595238095238),
        (80, "full"): (0.8625, 0.8671428571428571),
    }
    documents = read_json(experiment.folder / "derived/comparisons.json")
    by_pair = {(d["a"], d["b"]): d["metrics"] for d in documents}
    for a, b, metric, difference, interval in INTERVALS:
        found = by_pair[a, b][metric]
        assert found["difference"] == pytest.approx(difference, abs=1e-10)
        assert found["interval"] == pytest.approx(interval, abs=1e-10)


def test_steps_and_updates_are_points(experiment: Experiment) -> None:
    first = MetricPoint.objects.get(
        experiment=experiment, name="rollout/shopsim/strict_reward_mean", step=1
    )
    assert first.value == 0.5843454790823213
    groups = MetricPoint.objects.filter(
        experiment=experiment, name="rollout/shopsim/trajectory_count"
    )
    assert (groups.count(), sum(g.value for g in groups)) == (80, 20_312)
    updates = UpdatePoint.objects.filter(experiment=experiment, name="train/grad_norm")
    assert updates.count() == 160
    assert updates.order_by("-value").values_list("update", flat=True)[0] == 64


def test_importing_again_changes_nothing(
    published: Path, result: dict[str, Any], experiment: Experiment
) -> None:
    assert run.import_run(published, "published") == result
    assert verify(experiment)["mismatched"] == []


def test_a_changed_copy_is_found_by_verify(experiment: Experiment) -> None:
    path = experiment.folder / "artifacts/analysis/rounds.csv"
    text = path.read_bytes()
    path.write_bytes(text + b" ")
    try:
        wrong = verify(experiment)["mismatched"]
    finally:
        path.write_bytes(text)
    assert [item["path"] for item in wrong] == ["artifacts/analysis/rounds.csv"]


def test_candidates_carry_their_cards_and_verdicts(experiment: Experiment) -> None:
    found = Candidate.objects.get(experiment=experiment, candidate_id="online-bbef274e1764d953")
    assert (found.status, found.rank, found.operation) == ("selected", 1, "ADD")
    assert found.source_card_ids
    last = Candidate.objects.filter(experiment=experiment, round__number=3)
    assert {c.content for c in last} == {""}
    assert last.count() == 4


@pytest.mark.django_db
def test_any_subset_is_imported_and_damage_is_named(
    published: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = tmp_path / "part"
    shutil.copytree(published / "artifacts/round-001", part / "artifacts/round-001")
    for path in [part, *part.rglob("*")]:
        path.chmod(0o755)
    curriculum = part / "artifacts/round-001/curriculum.json"
    text = curriculum.read_text(encoding="utf-8")
    curriculum.write_text(text.replace('"seed": 20260901', '"seed": 1'), encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        call_command("import_run", str(part), name="part", json=True)
    assert stopped.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert {item["path"] for item in found["mismatched"]} == {"artifacts/round-001/curriculum.json"}
    assert (found["rounds"], found["skill_versions"], found["contributions"]) == (1, 1, 0)
    assert "artifacts/cold-start/selected_skillbank.json" in found["missing"]


@pytest.mark.django_db
def test_a_further_round_is_imported_and_the_pages_hold_it(
    published: Path, home: Path, tmp_path: Path, viewer_client: Client
) -> None:
    """Round 4: the files of round 2 under a new number, its rows appended to every table."""
    more = tmp_path / "more"
    shutil.copytree(published, more)
    for path in [more, *more.rglob("*")]:
        path.chmod(0o755)
    shutil.copytree(more / "artifacts/round-002", more / "artifacts/round-004")
    for name in ("chunk_contributions.csv", "training_steps.csv", "rounds.csv"):
        _append_round(more / "artifacts/analysis" / name, "2", "4", steps=40)
    result = run.import_run(more, "more")
    assert (result["rounds"], result["skill_versions"], result["contributions"]) == (5, 6, 63)
    rows = {
        number: list(
            Contribution.objects.filter(
                gate__round__experiment__name="more", gate__round__number=number
            ).values_list("intervention_id", "coefficient", "rank", "status")
        )
        for number in (2, 4)
    }
    assert rows[4] == rows[2]
    assert len(rows[4]) == 11
    for page in ("rounds/4/", "rounds/4/gate/", "rounds/4/masks/", "skills/5/", "internalisation/"):
        assert viewer_client.get(f"/experiments/more/{page}").status_code == 200
    matrix = viewer_client.get("/experiments/more/?format=json").json()["survival"]
    assert {row["round"] for row in matrix} == {0, 1, 2, 3, 4}


def _append_round(path: Path, old: str, new: str, *, steps: int) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])
    for row in [r for r in rows if r["round"] == old]:
        step = {"step": str(int(row["step"]) + steps)} if "step" in row else {}
        rows.append({**row, "round": new, **step})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.django_db
def test_a_folder_of_neither_layout_and_a_taken_name_are_refused(
    published: Path, home: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="neither a published run nor a run folder"):
        run.import_run(tmp_path, "nothing")
    Experiment.objects.create(name="taken")
    with pytest.raises(InputError, match="was not imported"):
        run.import_run(published, "taken")
    with pytest.raises(InputError, match="is no name"):
        run.import_run(published, "no name")


@pytest.mark.django_db
def test_a_gate_with_its_observations_gets_intervals(
    published: Path, home: Path, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    for name in ("round-000", "cold-start"):
        shutil.copytree(published / f"artifacts/{name}", full / f"artifacts/{name}")
    for path in [full, *full.rglob("*")]:
        path.chmod(0o755)
    folder = PublishedFolder(full)
    _write_contributions(folder)
    result = run.import_run(full, "full")
    assert result["contributions"] == 16
    gate = GateRun.objects.get(round__experiment__name="full")
    assert gate.delta_low is not None
    assert gate.delta_high is not None
    assert gate.delta_low < gate.delta_mean < gate.delta_high  # type: ignore[operator]
    assert all(row.se for row in gate.contributions.all())


def _write_contributions(folder: PublishedFolder) -> None:
    """A ``contributions.json`` for round 0 as the publisher's gate writes it, rewards made up."""
    design = rebuilt_design(folder, 0, Report())
    assert design is not None
    manifest = folder.json(folder.round(0) / "gate/online_gate_manifest.json")
    rng = np.random.default_rng(1)
    masked, bare = rng.random((400, 1)), rng.random((400, 1))
    fit = least_squares(design.masks, masked - bare)
    names, outcomes = design.layout.columns, ("reward",)
    estimated = estimates(fit, names, outcomes, masked, bare)
    values = dict(zip(names, fit.beta[:, 0].tolist(), strict=True))
    rows = [
        {
            "episode_id": f"task-{task:06d}__sample-000",
            "task_id": task,
            "sample_id": 0,
            "mask": design.masks[i].astype(int).tolist(),
            "included_chunk_ids": [n for n, on in zip(names, design.masks[i], strict=True) if on],
            "reward": masked[i, 0],
            "bare_reward": bare[i, 0],
            "reward_detail": {},
            "bare_reward_detail": {},
        }
        for i, task in enumerate(manifest["input"]["task_ids"])
    ]
    document = contributions_document(
        design.layout,
        select(design.layout, values, 10),
        estimator={"baseline": "same_task_bare_validation"},
        pool_sha256=manifest["input"]["pool_sha256"],
        assignment_sha256=manifest["input"]["assignment_sha256"],
        requested=400,
        dropped=[],
        budget=10,
        estimated=estimated,
        observations_table=rows,
        bare_baseline=manifest["input"]["bare_baseline"],
    )
    write_json(folder.round(0) / "gate/contributions.json", document)
