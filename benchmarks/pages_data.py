"""Rows of large pages, for benchmarks and tests: 100 rounds of 80 steps, a gate of 64 × 8."""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.monitoring.models import MetricPoint
from intraskill_web.skills.models import ChunkRevision, SkillVersion, SkillVersionChunk
from jobs.transitions import State
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_json
from trainer.gate.artefacts import CONTRIBUTIONS_SCHEMA
from trainer.gate.regression import least_squares

ROUNDS, STEPS, CHUNKS = 100, 80, 10
NAMES = [f"rollout/shopsim/{name}" for name in ("success_rate", "reward_mean", "scored_rate")]
NAMES += [f"rollout/metric_{n}" for n in range(7)]
GATE_CHUNKS, GATE_TASKS = 64, 400
GATE_PARTS = [f"r_part{k}" for k in range(8)]
BATCH = 2000


def long_experiment() -> Experiment:
    """Rounds 0 to 98 are done, the last is in training."""
    config = ExperimentConfig.model_validate(
        {"name": "long", "rounds": ROUNDS, "train": {"steps": STEPS},
         "start": {"skillbank": "/s0.json", "checkpoint": "/c"}}
    )  # fmt: skip
    now = timezone.now()
    experiment = Experiment.objects.create(
        name="long", rounds_planned=ROUNDS, state="running", config=config.model_dump(mode="json")
    )
    rounds = Round.objects.bulk_create(
        Round(experiment=experiment, number=n, state="succeeded" if n < ROUNDS - 1 else "running",
              started_at=now - timedelta(hours=ROUNDS - n), ended_at=now)
        for n in range(ROUNDS)
    )  # fmt: skip
    _stages(rounds)
    _skills(experiment, rounds)
    CheckpointScore.objects.bulk_create(
        CheckpointScore(experiment=experiment, round=round_, step=(round_.number + 1) * STEPS,
                        split="val", arm=arm, n=400, success=0.5 + 0.001 * round_.number,
                        reward=0.5, path="x")
        for round_ in rounds for arm in ("bare", "full")
    )  # fmt: skip
    MetricPoint.objects.bulk_create(
        (
            MetricPoint(experiment=experiment, round=round_, name=name, value=0.5,
                        step=round_.number * STEPS + step + 1)
            for round_ in rounds for step in range(STEPS) for name in NAMES
        ),
        batch_size=BATCH,
    )  # fmt: skip
    return experiment


def _stages(rounds: list[Round]) -> None:
    working = rounds[-1]
    stages = Stage.objects.bulk_create(
        Stage(round=round_, kind=kind, position=position,
              state=_state(round_ is working, position), done=40, total=80, unit="step")
        for round_ in rounds for position, kind in enumerate(STAGE_ORDER)
    )  # fmt: skip
    begun = [stage for stage in stages if stage.state]
    now = timezone.now()
    Attempt.objects.bulk_create(
        Attempt(stage=stage, number=1, state=stage.state, started_at=now, log_path="logs/none.log")
        for stage in begun
    )


def _state(works: bool, position: int) -> str:
    if not works or position == 0:
        return State.SUCCEEDED
    return State.RUNNING if position == 1 else ""


def _skills(experiment: Experiment, rounds: list[Round]) -> None:
    revisions = ChunkRevision.objects.bulk_create(
        ChunkRevision(experiment=experiment, skill_id=f"chunk-{n}", content_sha256=f"{n:064d}",
                      content="text", version="1", title=f"Chunk {n}")
        for n in range(CHUNKS)
    )  # fmt: skip
    versions = SkillVersion.objects.bulk_create(
        SkillVersion(experiment=experiment, label=f"S{n}", number=n, bank_sha256=f"{n:064d}",
                     path=f"{n}.json")
        for n in range(ROUNDS)
    )  # fmt: skip
    SkillVersionChunk.objects.bulk_create(
        SkillVersionChunk(version=version, revision=revision, order=order, effect=0.01)
        for version in versions for order, revision in enumerate(revisions)
    )  # fmt: skip
    gates = GateRun.objects.bulk_create(
        GateRun(round=round_, profile="standard", status="complete", pool_sha256="0" * 64,
                assignment_sha256="0" * 64, observations=400, requested=400, bare_mean=0.5,
                masked_mean=0.6, delta_mean=0.1, summary={}, path="gate")
        for round_ in rounds[:-1]
    )  # fmt: skip
    Contribution.objects.bulk_create(
        Contribution(gate=gate, intervention_id=f"chunk-{n}", logical_chunk_id=f"chunk-{n}",
                     operation="KEEP", kind="current", order=n, coefficient=0.01, se=0.005,
                     low=0.0, high=0.02, rank=n + 1, status="selected")
        for gate in gates for n in range(CHUNKS)
    )  # fmt: skip


def gate_to_fill(name: str) -> GateRun:
    """A gate of an experiment of its own, to be filled by ``large_gate``."""
    config = {"train": {"steps": STEPS}}
    experiment = Experiment.objects.create(name=name, config=config, state="succeeded")
    round_ = Round.objects.create(experiment=experiment, number=0, state="succeeded")
    return GateRun.objects.create(
        round=round_, profile="standard", status="complete", pool_sha256="0" * 64,
        assignment_sha256="0" * 64, observations=GATE_TASKS, requested=GATE_TASKS, bare_mean=0.5,
        masked_mean=0.6, delta_mean=0.1, summary={}, path="round-000/gate",
    )  # fmt: skip


def large_gate(gate: GateRun) -> GateRun:
    """Give ``gate`` the rows and the observations of 64 interventions and 8 components."""
    rng = random.Random(5)
    masks = np.array(
        [[rng.random() < 0.5 for _ in range(GATE_CHUNKS)] for _ in range(GATE_TASKS)], float
    )
    after = np.array(
        [[rng.random() for _ in range(len(GATE_PARTS) + 1)] for _ in range(GATE_TASKS)]
    )
    before = np.array(
        [[rng.random() for _ in range(len(GATE_PARTS) + 1)] for _ in range(GATE_TASKS)]
    )
    fit = least_squares(masks, after - before)
    beta = fit.beta[:, -1].tolist()
    names = [f"chunk-{j:012x}" for j in range(GATE_CHUNKS)]
    ranks = {j: n for n, j in enumerate(sorted(range(GATE_CHUNKS), key=lambda j: -beta[j]), 1)}
    status = [
        "selected" if beta[j] > 0 and ranks[j] <= 10 else "retired" for j in range(GATE_CHUNKS)
    ]
    gate.contributions.all().delete()
    Contribution.objects.bulk_create(
        Contribution(
            gate=gate,
            order=j + 1,
            intervention_id=name,
            logical_chunk_id=name,
            kind="current",
            title=f"候选商品筛选 · 历史行为与预算协同 {j}",
            coefficient=beta[j],
            se=0.05,
            low=beta[j] - 0.1,
            high=beta[j] + 0.1,
            rank=ranks[j],
            status=status[j],
            with_n=int(masks[:, j].sum()),
            without_n=GATE_TASKS - int(masks[:, j].sum()),
        )
        for j, name in enumerate(names)
    )
    GateRun.objects.filter(pk=gate.pk).update(observations=GATE_TASKS, requested=GATE_TASKS)
    write_json(
        gate.round.experiment.folder / gate.path / "contributions.json",
        {
            "schema_version": CONTRIBUTIONS_SCHEMA,
            "active_skill_budget": 10,
            "contributions": [
                {
                    "intervention_id": name,
                    "kind": "current",
                    "operation": None,
                    "logical_chunk_id": name,
                    "order": j + 1,
                    "coefficient": beta[j],
                    "status": status[j],
                }
                for j, name in enumerate(names)
            ],
            "observations_table": [
                {
                    "task_id": i,
                    "sample_id": 0,
                    "mask": masks[i].astype(int).tolist(),
                    "included_chunk_ids": [n for n, m in zip(names, masks[i], strict=True) if m],
                    "reward": after[i, -1],
                    "bare_reward": before[i, -1],
                    "reward_detail": dict(zip(GATE_PARTS, after[i].tolist(), strict=False)),
                    "bare_reward_detail": dict(zip(GATE_PARTS, before[i].tolist(), strict=False)),
                }
                for i in range(GATE_TASKS)
            ],
        },
    )
    return gate
