"""A long experiment, 100 rounds of 80 steps: pages stay quick and ask a fixed number of queries.

Times are seconds of the CPU, the quickest of several answers, because a machine that tests share
with others is slow by accident and never fast by accident.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.monitoring.models import MetricPoint
from intraskill_web.skills.models import ChunkRevision, SkillVersion, SkillVersionChunk
from jobs.transitions import State
from trainer.config import ExperimentConfig

ROUNDS, STEPS, CHUNKS = 100, 80, 10
NAMES = [f"rollout/shopsim/{name}" for name in ("success_rate", "reward_mean", "scored_rate")]
NAMES += [f"rollout/metric_{n}" for n in range(7)]
OVERVIEW, ROUND = "/experiments/long/", f"/experiments/long/rounds/{ROUNDS - 1}/"
QUERIES = 12
OVERVIEW_S, POLL_S = 0.100, 0.005
BATCH = 2000


@pytest.fixture
def long(db: None) -> Experiment:
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


def quickest(act: Callable[[], Any], times: int = 7) -> float:
    """Seconds of the quickest of several calls, the first not counted."""
    act()
    taken = []
    for _ in range(times):
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    return min(taken)


def test_pages_and_polls_of_a_long_experiment_are_quick_and_ask_little(
    long: Experiment,
    viewer_client: Client,
    django_assert_max_num_queries: Any,
    record_property: Callable[[str, object], None],
) -> None:
    for path in (OVERVIEW, ROUND, "/"):
        with django_assert_max_num_queries(QUERIES):
            assert viewer_client.get(path).status_code == 200
    seconds = {
        "overview": quickest(lambda: viewer_client.get(OVERVIEW)),
        "round": quickest(lambda: viewer_client.get(ROUND)),
    }
    for name, path in (("overview", OVERVIEW), ("round", ROUND)):
        tag = viewer_client.get(f"{path}?part=live")["ETag"]

        def poll(path: str = path, tag: str = tag) -> None:
            answer = viewer_client.get(f"{path}?part=live", headers={"If-None-Match": tag})
            assert answer.status_code == 304

        seconds[f"{name} poll"] = quickest(poll, 20)
    record_property("seconds", seconds)
    assert seconds["overview"] < OVERVIEW_S, seconds
    assert seconds["overview poll"] < POLL_S, seconds
    assert seconds["round poll"] < POLL_S, seconds
