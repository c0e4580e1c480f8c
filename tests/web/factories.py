"""A plausible experiment of two rounds, in rows and trace files, without running anything.

Everything is drawn from one seed. Rates, coefficients and texts are made up for tests; shapes and
names are those of the run folder (docs/design/architecture.md).
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from intraskill_web.episodes.content import sayings
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.prepare import Prepared, terms_of
from intraskill_web.episodes.publish import publish
from intraskill_web.episodes.rows import outcome_of
from intraskill_web.experiments.models import Attempt, CheckpointScore, Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from intraskill_web.skills.models import (
    ChunkRevision,
    Curriculum,
    SkillVersion,
    SkillVersionChunk,
)
from tests.web.traces import ChunkLine, chunk_text, make_trace
from trainer.canonical import fingerprint
from trainer.files import write_bytes, write_text
from trainer.shop.types import REWARD_PARTS

PREFIX = "rollout/shopsim/"
CHUNKS: list[ChunkLine] = [
    ("brand-first", "Put the preferred brand in the query", 0.062),
    ("next-page", "When no result fits, look at the next page", 0.048),
    ("open-details", "Open the details when the material is not shown", 0.045),
    ("go-back", "Go back when an option is missing", 0.041),
    ("colour", "Select the wanted colour before buying", 0.030),
    ("size", "Select the wanted size before buying", 0.027),
    ("budget", "Check the price against the budget", 0.019),
    ("polite", "Thank the seller", -0.004),
    ("screening", "候选商品筛选 · 历史行为与预算协同", -0.009),
    ("hurry", "Save turns and buy at once", -0.041),
]
# intervention, title, logical chunk, coefficient, kind, operation
CANDIDATES = [
    (
        "online-6f02a1b2c3d4e5f6",
        "Read the details page to its end",
        "open-details",
        -0.012,
        "candidate",
        "REWRITE",
    ),
    (
        "online-8e3e179b9270814a",
        "Compare two products before buying",
        "online-8e3e179b9270814a",
        0.021,
        "candidate",
        "ADD",
    ),
]
REWRITTEN = {"open-details": "Open the details page whenever the material is not shown"}
STEPS = 12
GROUPS = 8
SIBLINGS = 4
RETRY_FAILED = "full_skill_failure_pending_analysis"
RETRY_SUCCEEDED = "model_internalization_deficit"


@dataclass(slots=True)
class Made:
    """What was made."""

    experiment: Experiment
    rounds: list[Round] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)


def make_experiment(name: str = "demo", *, owner: Any = None, **settings: Any) -> Made:
    """Rounds of which the last is in training when ``running``, else all are finished."""
    return Maker(**settings).make(name, owner)


def rho(effect: float) -> float:
    """The published mapping for a largest effect of 0.062."""
    return min(0.9, max(0.2, 0.2 + 0.7 * effect / 0.062))


def log_text(kind: str, begun: datetime, lines: int = 40) -> str:
    """A log with levels, colours and a hostile line."""
    out = []
    for i in range(lines):
        at = (begun + timedelta(seconds=i)).strftime("%Y-%m-%dT%H:%M:%S")
        level = "WARNING" if i % 13 == 7 else "INFO"
        reward = f"\x1b[32m0.{600 + i}\x1b[0m"
        out.append(f"{at} {level} {kind}: step {i}, 8 of 8 groups, reward {reward}")
    out.append(f"{begun:%Y-%m-%dT%H:%M:%S} INFO <script>alert('log')</script> \x1b]0;t\x07 end")
    return "\n".join(out) + "\n"


@dataclass(slots=True)
class Maker:
    """The sizes of what is made; one instance makes one experiment."""

    seed: int = 7
    rounds: int = 2
    running: bool = True
    steps: int = STEPS
    groups: int = GROUPS
    val_tasks: int = 40
    rng: random.Random = field(init=False)

    def make(self, name: str, owner: Any) -> Made:
        self.rng = random.Random(self.seed)
        config = self._config()
        experiment = Experiment.objects.create(
            name=name,
            seed=self.seed,
            rounds_planned=max(self.rounds, 4),
            state="running" if self.running else "stopped",
            config=config,
            config_sha256=fingerprint(config),
            owner=owner,
        )
        made = Made(experiment)
        bank = list(CHUNKS)
        self._version(experiment, 0, bank, None)
        for number in range(self.rounds):
            bank = self._one_round(made, number, bank)
        return made

    def _one_round(self, made: Made, number: int, bank: list[ChunkLine]) -> list[ChunkLine]:
        working = self.running and number == self.rounds - 1
        done = max(1, self.steps * 3 // 5) if working else self.steps
        begun = timezone.now() - timedelta(minutes=30 - 9 * number)
        round_ = self._round(made, number, begun, done if working else None)
        self._curriculum(round_, bank)
        if number == 0:
            self._scores(round_, 0, 0.49, 0.80)
            self._evaluate(round_, "baseline/bare", "bare", bank, 0.49)
        self._train(round_, bank, done)
        if working:
            return bank
        bare = min(0.97, 0.66 + 0.12 * number)
        self._scores(
            round_, (number + 1) * self.steps, bare, min(0.98, bare + 0.17 - 0.07 * number)
        )
        self._evaluate(round_, "validate/bare", "bare", bank, bare)
        self._evaluate(round_, "gate", "masked", bank, bare + 0.05)
        selected = self._gate(round_, bank)
        self._version(made.experiment, number + 1, selected, round_)
        return selected

    def _config(self) -> dict[str, Any]:
        rollout = {
            "groups_per_wave": self.groups,
            "groups_kept": self.groups // 2,
            "episodes_per_group": SIBLINGS,
        }
        return {
            "train": {"steps": self.steps, "rollout": rollout},
            "evaluation": {"bare_tasks": self.val_tasks, "full_tasks": self.val_tasks},
            "gate": {"profile": "published", "active_skill_budget": 10},
        }

    def _round(self, made: Made, number: int, begun: datetime, done: int | None) -> Round:
        """The round with its stages and attempts; ``done`` is None for a finished round."""
        working = done is not None
        round_ = Round.objects.create(
            experiment=made.experiment,
            number=number,
            started_at=begun,
            state="running" if working else "succeeded",
            ended_at=None if working else begun + timedelta(minutes=8),
        )
        made.rounds.append(round_)
        for position, kind in enumerate(STAGE_ORDER):
            state = "succeeded"
            if working and position:
                state = "running" if kind == "train" else ""
            at = begun + timedelta(minutes=position)
            active = state == "running"
            stage = Stage.objects.create(
                round=round_,
                kind=kind,
                state=state,
                done=done or 0 if active else self.steps if state else 0,
                total=self.steps if state else 0,
                unit="step" if kind == "train" else "episode",
                eta_seconds=74.0 if active else None,
                message=f"step {done}" if active else "",
                started_at=at if state else None,
                ended_at=at + timedelta(seconds=50) if state == "succeeded" else None,
            )
            if state:
                made.attempts.append(self._attempt(stage, state, at))
        return round_

    def _attempt(self, stage: Stage, state: str, begun: datetime) -> Attempt:
        active = state == "running"
        attempt = Attempt.objects.create(
            stage=stage,
            number=1,
            state=state,
            host="laptop",
            pid=4711,
            pgid=4711,
            worker="w1",
            started_at=begun,
            heartbeat_at=timezone.now(),
            ended_at=None if active else begun + timedelta(seconds=50),
            exit_code=None if active else 0,
            peak_memory_bytes=412 * 2**20,
            config_sha256=fingerprint(stage.kind),
            environment={"python": "3.11.9", "packages": {"torch": "2.13.0", "numpy": "2.4.6"}},
        )
        attempt.log_path = f"logs/{attempt.pk}.log"
        attempt.save()
        write_text(attempt.log_file, log_text(stage.kind, begun))
        return attempt

    def _version(
        self, experiment: Experiment, number: int, bank: Sequence[ChunkLine], round_: Round | None
    ) -> None:
        version = SkillVersion.objects.create(
            experiment=experiment,
            number=number,
            label=f"S{number}",
            from_round=round_,
            bank_sha256=fingerprint([number, bank]),
            path="skillbank.json",
        )
        for order, (skill_id, title, effect) in enumerate(bank):
            content = chunk_text(title)
            revision, _new = ChunkRevision.objects.get_or_create(
                experiment=experiment,
                skill_id=skill_id,
                content_sha256=fingerprint(content),
                defaults={"content": content, "version": "1", "title": title},
            )
            SkillVersionChunk.objects.create(
                version=version, revision=revision, order=order, effect=effect, rho=rho(effect)
            )

    def _curriculum(self, round_: Round, bank: Sequence[ChunkLine]) -> None:
        chunks = [{"skill_id": c[0], "rho": rho(c[2]), "effect": c[2]} for c in bank]
        Curriculum.objects.create(
            round=round_,
            version=SkillVersion.objects.get(experiment=round_.experiment, number=round_.number),
            state_id=fingerprint([round_.number, chunks]),
            q=0.2,
            rho_min=0.2,
            rho_max=0.9,
            chunks=chunks,
            path="curriculum.json",
        )

    def _scores(self, round_: Round, step: int, bare: float, full: float) -> None:
        for arm, success in (("bare", bare), ("full", full)):
            CheckpointScore.objects.create(
                experiment=round_.experiment,
                round=round_,
                step=step,
                split="val",
                arm=arm,
                n=self.val_tasks,
                success=round(success * self.val_tasks) / self.val_tasks,
                reward=success + 0.03,
                path="x",
            )

    def _train(self, round_: Round, bank: Sequence[ChunkLine], done: int) -> None:
        """Episodes, groups, retries, metric and update points of ``done`` steps."""
        of = {"experiment": round_.experiment, "round": round_}
        for i in range(done):
            step = round_.number * self.steps + i + 1
            level = min(0.95, 0.55 + 0.14 * round_.number + 0.012 * i)
            rows, traces = self._step(round_, bank, step, level)
            publish_rows(rows, traces)
            values = metrics(bank, [e for e in rows if e.purpose == "train"], step)
            MetricPoint.objects.bulk_create(
                MetricPoint(**of, name=name, step=step, value=value)
                for name, value in values.items()
            )
            UpdatePoint.objects.bulk_create(
                UpdatePoint(
                    **of, name="loss", update=2 * step - 1 + k, step=step, value=0.02 / step
                )
                for k in range(2)
            )

    def _step(
        self, round_: Round, bank: Sequence[ChunkLine], step: int, level: float
    ) -> tuple[list[Episode], list[dict[str, Any]]]:
        path = f"round-{round_.number:03d}/train/steps/step-{step:06d}.jsonl.gz"
        rows: list[Episode] = []
        traces: list[dict[str, Any]] = []

        def add(trace: dict[str, Any], **fields: Any) -> None:
            rows.append(episode_row(round_, trace, path, len(traces), step=step, **fields))
            traces.append(trace)

        for index in range((step - 1) * self.groups, step * self.groups):
            free = self.rng.random() < 0.2
            shown = [] if free else [c for c in bank if self.rng.random() < rho(c[2])]
            mode = "skill_free" if free else "assisted" if shown else "assisted_empty"
            lost = self.rng.random() < 0.12
            wins = [not lost and self.rng.random() < level for _ in range(SIBLINGS)]
            helped = self.rng.random() < 0.3
            triage = "not_frontier" if any(wins) else RETRY_SUCCEEDED if helped else RETRY_FAILED
            shared = {"group_index": index, "triage": triage}
            for sample, won in enumerate(wins):
                add(
                    self._played(f"group-{index}-sample-{sample}", index, sample, shown, won),
                    **shared,
                    purpose="train",
                    treatment_mode=mode,
                    admitted=any(wins) and not all(wins),
                    advantage=float(won) - sum(wins) / len(wins),
                )
            if not any(wins):
                add(
                    self._played(f"group-{index}-retry", index, SIBLINGS, bank, helped),
                    **shared,
                    purpose="retry",
                    treatment_mode="diagnostic_full_skill",
                    admitted=False,
                )
        write_traces(round_, path, traces)
        return rows, traces

    def _played(
        self, name: str, index: int, sample: int, chunks: Sequence[ChunkLine], won: bool
    ) -> dict[str, Any]:
        return make_trace(name, 1000 + index, sample, chunks, success=won, split="train")

    def _evaluate(
        self, round_: Round, folder: str, arm: str, bank: Sequence[ChunkLine], level: float
    ) -> None:
        path = f"round-{round_.number:03d}/{folder}/traces.jsonl"
        purpose = folder.split("/", maxsplit=1)[0] if "baseline" in folder else arm
        traces = []
        for task in range(self.val_tasks):
            shown = [c for c in bank if arm == "masked" and self.rng.random() < 0.5]
            won = self.rng.random() < level
            traces.append(make_trace(f"task-{task:06d}__sample-000", task, 0, shown, success=won))
        write_traces(round_, path, traces)
        rows = [
            episode_row(round_, t, path, i, purpose=purpose, arm=arm, treatment_mode=arm)
            for i, t in enumerate(traces)
        ]
        publish_rows(rows, traces)

    def _gate(self, round_: Round, bank: Sequence[ChunkLine]) -> list[ChunkLine]:
        """The gate's rows; returns the next bank."""
        fade = 0.8**round_.number
        items = [(c, t, c, e * fade, "current", "KEEP") for c, t, e in bank]
        items += CANDIDATES if round_.number == 0 else []
        gate = GateRun.objects.create(
            round=round_,
            status="complete",
            pool_sha256=fingerprint("pool"),
            assignment_sha256=fingerprint("assignment"),
            observations=self.val_tasks,
            requested=self.val_tasks,
            bare_mean=0.766,
            masked_mean=0.792,
            delta_mean=0.026,
            delta_low=-0.011,
            delta_high=0.062,
            summary={"active_skill_budget": 10, "standard_errors": "HC3"},
            path="gate",
        )
        winners = [item for item in items if item[5] != "REWRITE"]
        ranks = {i[0]: n for n, i in enumerate(sorted(winners, key=lambda i: -i[3]), 1)}
        for order, (intervention, title, logical, value, kind, operation) in enumerate(items):
            share = 1 / (1 + sum(other[2] == logical for other in items))
            shown = sum(self.rng.random() < share for _ in range(self.val_tasks))
            bad = "retired" if kind == "current" else "rewrite_loser"
            Contribution.objects.create(
                gate=gate,
                order=order,
                intervention_id=intervention,
                logical_chunk_id=logical,
                operation=operation,
                kind=kind,
                title=title,
                coefficient=value,
                se=0.021,
                low=value - 0.041,
                high=value + 0.041,
                rank=ranks.get(intervention),
                status="selected" if value > 0 else bad,
                with_n=shown,
                without_n=self.val_tasks - shown,
            )
        return [(i[2], REWRITTEN.get(i[2], i[1]), i[3]) for i in winners if i[3] > 0]


def metrics(bank: Sequence[ChunkLine], rows: Sequence[Episode], step: int) -> dict[str, float]:
    """The metrics of one step by full name."""
    groups = {e.group_index: e for e in rows}
    assisted = [e for e in groups.values() if e.treatment_mode != "skill_free"]
    turns = sum(e.turns for e in rows)
    values: dict[str, float] = {
        "trajectory_count": len(rows),
        "group_count": len(groups),
        "train_group_count": sum(bool(e.admitted) for e in groups.values()),
        "scored_rate": 1.0,
        "success_rate": sum(bool(e.success) for e in rows) / len(rows),
        "strict_reward_mean": sum(e.reward or 0 for e in rows) / len(rows),
        "skill_free_group_rate": 1 - len(assisted) / len(groups),
        "assisted_group_count": len(assisted),
        "turn_count": turns,
        "protocol_error_rate": sum(e.protocol_errors for e in rows) / turns,
        "sampled_token_count": sum(e.tokens or 0 for e in rows),
        "zero_std_group_drop_count": 2,
        "zero_std_group_drop_rate": 0.25,
    }
    for skill_id, _title, effect in bank if assisted else []:
        seen = sum(skill_id in e.skill_ids for e in assisted)
        values[f"chunk/{skill_id}/inclusion_rate"] = seen / len(assisted)
        values[f"chunk/{skill_id}/target_rho"] = rho(effect)
    times = {"perf/step_time": 2.8 + step % 3 * 0.1, "perf/rollout_time": 1.6}
    return {PREFIX + name: value for name, value in values.items()} | times


def episode_row(
    round_: Round, trace: Mapping[str, Any], path: str, line: int, **fields: Any
) -> Episode:
    """The row of a made trace."""
    final, job = trace["final"], trace["job"]
    ids = [chunk["skill_id"] for chunk in trace["selected_skills"]]
    return Episode(
        experiment=round_.experiment,
        round=round_,
        episode_id=trace["episode_id"],
        status="completed",
        sample_id=job["sample_id"],
        task_id=job["task_id"],
        split=job["split"],
        skill_ids=ids,
        skill_count=len(ids),
        reward=final["reward"],
        success=final["reward_detail"]["r_success"] == 1.0,
        scored=True,
        termination=final["termination_reason"],
        turns=len(trace["steps"]),
        tokens=16,
        protocol_errors=1 if line % 17 == 3 else 0,
        instruction=trace["reset"]["task_instruction"],
        path=path,
        line=line,
        **{part: final["reward_detail"][part] for part in REWARD_PARTS},
        **fields,
    )


def publish_rows(rows: Sequence[Episode], traces: Sequence[Mapping[str, Any]]) -> None:
    """Rows and index terms; the bodies stay in the trace files."""
    prepared = []
    for row, trace in zip(rows, traces, strict=True):
        values = {f.attname: getattr(row, f.attname) for f in Episode._meta.concrete_fields}
        values["outcome"] = outcome_of(values)
        prepared.append(Prepared(values, terms_of(trace, sayings(trace)), None))
    publish(prepared, {})


def write_traces(round_: Round, path: str, traces: Iterable[Mapping[str, Any]]) -> None:
    """The trace file, gzipped when its name says so."""
    text = "".join(json.dumps(t, ensure_ascii=False) + "\n" for t in traces).encode()
    file = round_.experiment.folder / path
    write_bytes(file, gzip.compress(text) if path.endswith(".gz") else text)
