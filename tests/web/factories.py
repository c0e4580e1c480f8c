"""A plausible experiment of two rounds, in rows and trace files, without running anything.

Everything is drawn from one seed. Rates, coefficients and texts are made up for tests; shapes and names
are those of the run folder (docs/design/architecture.md).
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

from intraskill_web.episodes.models import Episode
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
from trainer.canonical import fingerprint
from trainer.files import write_bytes, write_text

PREFIX = "rollout/shopsim/"
CHUNKS = [
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
REWRITE = ("online-6f02a1b2c3d4e5f6", "Read the details page to its end", "open-details", -0.012)
ADDED = ("online-8e3e179b9270814a", "Compare two products before buying", "", 0.021)
STEPS = 12
GROUPS = 8
SIBLINGS = 4


@dataclass(slots=True)
class Made:
    """What was made."""

    experiment: Experiment
    rounds: list[Round] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.experiment.name


def make_experiment(
    name: str = "demo",
    *,
    seed: int = 7,
    rounds: int = 2,
    running: bool = True,
    steps: int = STEPS,
    groups: int = GROUPS,
    val_tasks: int = 40,
    owner: Any = None,
) -> Made:
    """Round 0 finished; the last round in training when ``running``, else finished too."""
    rng = random.Random(seed)
    config = _config(steps, groups, val_tasks)
    experiment = Experiment.objects.create(
        name=name, seed=seed, rounds_planned=max(rounds, 4), state="running" if running else "stopped",
        config=config, config_sha256=fingerprint(config), owner=owner,
    )  # fmt: skip
    made = Made(experiment)
    bank = list(CHUNKS)
    _version(experiment, 0, bank, None)
    start = timezone.now() - timedelta(minutes=30)
    for number in range(rounds):
        last = number == rounds - 1
        done = None if not (last and running) else max(1, steps * 3 // 5)
        round_ = _round(made, number, start + timedelta(minutes=9 * number), done, steps)
        _curriculum(round_, bank, number)
        if number == 0:
            _score(round_, 0, 0.49, 0.80, val_tasks)
            _evaluation(rng, round_, "baseline/bare", "baseline", "bare", val_tasks, bank, 0.49)
        _training(
            rng, round_, bank, steps if done is None else done, steps, groups, 0.55 + 0.14 * number
        )
        if done is not None:
            continue
        bare = min(0.97, 0.66 + 0.12 * number)
        _score(
            round_, (number + 1) * steps, bare, min(0.98, bare + 0.17 - 0.07 * number), val_tasks
        )
        _evaluation(rng, round_, "validate/bare", "bare", "bare", val_tasks, bank, bare)
        _evaluation(rng, round_, "gate", "masked", "masked", val_tasks, bank, bare + 0.05)
        bank = _gate(rng, round_, bank, val_tasks, number)
        _version(experiment, number + 1, bank, round_)
    return made


def _config(steps: int, groups: int, tasks: int) -> dict[str, Any]:
    return {
        "train": {"steps": steps, "rollout": {"groups_per_wave": groups, "groups_kept": groups // 2, "episodes_per_group": SIBLINGS}},
        "evaluation": {"bare_tasks": tasks, "full_tasks": tasks},
        "gate": {"profile": "published", "active_skill_budget": 10},
    }  # fmt: skip


def _round(made: Made, number: int, start: datetime, done: int | None, steps: int) -> Round:
    """The round with its stages and attempts; ``done`` is None for a finished round."""
    running = done is not None
    round_ = Round.objects.create(
        experiment=made.experiment, number=number, started_at=start,
        state="running" if running else "succeeded",
        ended_at=None if running else start + timedelta(minutes=8),
    )  # fmt: skip
    made.rounds.append(round_)
    for position, kind in enumerate(STAGE_ORDER):
        state = "succeeded"
        if running and position:
            state = "running" if kind == "train" else ""
        begun = start + timedelta(minutes=position)
        active = state == "running"
        stage = Stage.objects.create(
            round=round_, kind=kind, state=state,
            done=(done or 0) if active else steps if state else 0,
            total=steps if state else 0, unit="step" if kind == "train" else "episode",
            eta_seconds=74.0 if active else None, message=f"step {done}" if active else "",
            started_at=begun if state else None,
            ended_at=begun + timedelta(seconds=50) if state == "succeeded" else None,
        )  # fmt: skip
        if state:
            made.attempts.append(_attempt(stage, state, begun))
    return round_


def _attempt(stage: Stage, state: str, begun: datetime, number: int = 1) -> Attempt:
    attempt = Attempt.objects.create(
        stage=stage, number=number, state=state, host="laptop", pid=4711, pgid=4711, worker="w1",
        started_at=begun, heartbeat_at=timezone.now(),
        ended_at=None if state == "running" else begun + timedelta(seconds=50),
        exit_code=None if state == "running" else 0, peak_memory_bytes=412 * 2**20,
        config_sha256=fingerprint(stage.kind),
        environment={"python": "3.11.9", "packages": {"torch": "2.13.0", "numpy": "2.4.6"}},
    )  # fmt: skip
    attempt.log_path = f"logs/{attempt.pk}.log"
    attempt.save()
    write_text(attempt.log_file, log_text(stage.kind, begun))
    return attempt


def log_text(kind: str, begun: datetime, lines: int = 40) -> str:
    """A log with levels, colours and a hostile line."""
    out = []
    for i in range(lines):
        at = (begun + timedelta(seconds=i)).strftime("%Y-%m-%dT%H:%M:%S")
        level = "WARNING" if i % 13 == 7 else "INFO"
        out.append(
            f"{at} {level} {kind}: step {i}, 8 of 8 groups, reward \x1b[32m0.{600 + i}\x1b[0m"
        )
    out.append(f"{begun:%Y-%m-%dT%H:%M:%S} INFO <script>alert('log')</script> \x1b]0;title\x07 end")
    return "\n".join(out) + "\n"


def _version(
    experiment: Experiment,
    number: int,
    bank: Sequence[tuple[str, str, float]],
    round_: Round | None,
) -> SkillVersion:
    version = SkillVersion.objects.create(
        experiment=experiment, number=number, label=f"S{number}", from_round=round_,
        bank_sha256=fingerprint([chunk[0] for chunk in bank] + [number]), path="skillbank.json",
    )  # fmt: skip
    for order, (skill_id, title, effect) in enumerate(bank):
        content = chunk_text(title)
        revision, _new = ChunkRevision.objects.get_or_create(
            experiment=experiment, skill_id=skill_id, content_sha256=fingerprint(content),
            defaults={"content": content, "version": "1", "title": title},
        )  # fmt: skip
        SkillVersionChunk.objects.create(
            version=version, revision=revision, order=order, effect=effect, rho=rho(effect)
        )
    return version


def chunk_text(title: str) -> str:
    """A chunk in the usual layout."""
    return f"### {title}\n\n- Applies when: always\n- Procedure: {title.lower()}\n- Verify: look at the page"


def rho(effect: float) -> float:
    """The published mapping for a largest effect of 0.062."""
    return min(0.9, max(0.2, 0.2 + 0.7 * effect / 0.062))


def _curriculum(round_: Round, bank: Sequence[tuple[str, str, float]], number: int) -> None:
    version = SkillVersion.objects.get(experiment=round_.experiment, number=number)
    chunks = [{"skill_id": c[0], "rho": rho(c[2]), "effect": c[2]} for c in bank]
    Curriculum.objects.create(
        round=round_, version=version, state_id=fingerprint([number, chunks]), q=0.2,
        rho_min=0.2, rho_max=0.9, chunks=chunks, path="curriculum.json",
    )  # fmt: skip


def _score(round_: Round, step: int, bare: float, full: float, n: int, split: str = "val") -> None:
    for arm, success in (("bare", bare), ("full", full)):
        CheckpointScore.objects.create(
            experiment=round_.experiment, round=round_, step=step, split=split, arm=arm, n=n,
            success=round(success * n) / n, reward=success + 0.03, path="x",
        )  # fmt: skip


def _training(
    rng: random.Random,
    round_: Round,
    bank: Sequence[tuple[str, str, float]],
    done: int,
    steps: int,
    groups: int,
    level: float,
) -> None:
    """Episodes, groups, retries, metric and update points of ``done`` steps."""
    rows: list[Episode] = []
    points: list[MetricPoint] = []
    updates: list[UpdatePoint] = []
    for i in range(done):
        step = round_.number * steps + i + 1
        made = _step(rng, round_, bank, step, groups, min(0.95, level + 0.012 * i))
        rows += made
        points += _metrics(round_, bank, step, [e for e in made if e.purpose == "train"])
        updates += [
            UpdatePoint(
                experiment=round_.experiment, round=round_, name="loss", update=2 * step - 1 + k,
                step=step, value=0.02 / step,
            )
            for k in range(2)
        ]  # fmt: skip
    Episode.objects.bulk_create(rows)
    MetricPoint.objects.bulk_create(points)
    UpdatePoint.objects.bulk_create(updates)


def _step(
    rng: random.Random,
    round_: Round,
    bank: Sequence[tuple[str, str, float]],
    step: int,
    groups: int,
    level: float,
) -> list[Episode]:
    path = f"round-{round_.number:03d}/train/steps/step-{step:06d}.jsonl.gz"
    rows: list[Episode] = []
    traces: list[dict[str, Any]] = []
    for g in range(groups):
        index = (step - 1) * groups + g
        free = rng.random() < 0.2
        shown = [] if free else [c for c in bank if rng.random() < rho(c[2])]
        mode = "skill_free" if free else "assisted" if shown else "assisted_empty"
        wins = (
            [rng.random() < level for _ in range(SIBLINGS)]
            if rng.random() > 0.12
            else [False] * SIBLINGS
        )
        all_wrong = not any(wins)
        helped = all_wrong and rng.random() < 0.3
        triage = "not_frontier"
        if all_wrong:
            triage = (
                "model_internalization_deficit" if helped else "full_skill_failure_pending_analysis"
            )
        admitted = not all_wrong and not all(wins)
        mean = sum(wins) / len(wins)
        for sample, won in enumerate(wins):
            trace = make_trace(
                f"group-{index}-sample-{sample}",
                1000 + index,
                sample,
                shown,
                success=won,
                split="train",
            )
            traces.append(trace)
            rows.append(
                _row(
                    round_, trace, path, len(traces) - 1, purpose="train", step=step, group_index=index,
                    treatment_mode=mode, triage=triage, admitted=admitted, advantage=float(won) - mean,
                )
            )  # fmt: skip
        if all_wrong:
            trace = make_trace(
                f"group-{index}-retry", 1000 + index, SIBLINGS, bank, success=helped, split="train"
            )
            traces.append(trace)
            rows.append(
                _row(
                    round_, trace, path, len(traces) - 1, purpose="retry", step=step, group_index=index,
                    treatment_mode="diagnostic_full_skill", triage=triage, admitted=False,
                )
            )  # fmt: skip
    _write(round_, path, traces)
    return rows


def _metrics(
    round_: Round, bank: Sequence[tuple[str, str, float]], step: int, rows: Sequence[Episode]
) -> list[MetricPoint]:
    groups = {e.group_index: e for e in rows}
    assisted = [e for e in groups.values() if e.treatment_mode != "skill_free"]
    turns = sum(e.turns for e in rows)
    values: dict[str, float] = {
        PREFIX + "trajectory_count": len(rows),
        PREFIX + "group_count": len(groups),
        PREFIX + "train_group_count": sum(bool(e.admitted) for e in groups.values()),
        PREFIX + "scored_rate": 1.0,
        PREFIX + "success_rate": sum(bool(e.success) for e in rows) / len(rows),
        PREFIX + "strict_reward_mean": sum(e.reward or 0 for e in rows) / len(rows),
        PREFIX + "skill_free_group_rate": 1 - len(assisted) / len(groups),
        PREFIX + "assisted_group_count": len(assisted),
        PREFIX + "turn_count": turns,
        PREFIX + "protocol_error_rate": sum(e.protocol_errors for e in rows) / turns,
        PREFIX + "sampled_token_count": sum(e.tokens or 0 for e in rows),
        PREFIX + "zero_std_group_drop_count": 2,
        PREFIX + "zero_std_group_drop_rate": 0.25,
        "perf/step_time": 2.8 + step % 3 * 0.1,
        "perf/rollout_time": 1.6,
    }
    for skill_id, _title, effect in bank:
        if assisted:
            seen = sum(skill_id in e.skill_ids for e in assisted)
            values[f"{PREFIX}chunk/{skill_id}/inclusion_rate"] = seen / len(assisted)
            values[f"{PREFIX}chunk/{skill_id}/target_rho"] = rho(effect)
    return [
        MetricPoint(experiment=round_.experiment, round=round_, name=n, step=step, value=v)
        for n, v in values.items()
    ]


def _evaluation(
    rng: random.Random,
    round_: Round,
    folder: str,
    purpose: str,
    arm: str,
    tasks: int,
    bank: Sequence[tuple[str, str, float]],
    level: float,
) -> None:
    path = f"round-{round_.number:03d}/{folder}/traces.jsonl"
    rows, traces = [], []
    for task in range(tasks):
        shown = [c for c in bank if rng.random() < 0.5] if arm == "masked" else []
        trace = make_trace(
            f"task-{task:06d}__sample-000",
            task,
            0,
            shown,
            success=rng.random() < level,
            split="val",
        )
        traces.append(trace)
        rows.append(_row(round_, trace, path, task, purpose=purpose, arm=arm, treatment_mode=arm))
    _write(round_, path, traces)
    Episode.objects.bulk_create(rows)


def _gate(
    rng: random.Random,
    round_: Round,
    bank: Sequence[tuple[str, str, float]],
    n: int,
    number: int,
) -> list[tuple[str, str, float]]:
    """The gate's rows; returns the next bank."""
    items = [(c[0], c[1], c[0], c[2] * (0.8**number), "current", "KEEP") for c in bank]
    if number == 0:
        items.append((REWRITE[0], REWRITE[1], REWRITE[2], REWRITE[3], "candidate", "REWRITE"))
        items.append((ADDED[0], ADDED[1], ADDED[0], ADDED[3], "candidate", "ADD"))
    gate = GateRun.objects.create(
        round=round_, status="complete", pool_sha256=fingerprint("pool"),
        assignment_sha256=fingerprint("assignment"), observations=n, requested=n,
        bare_mean=0.766, masked_mean=0.792, delta_mean=0.026, delta_low=-0.011, delta_high=0.062,
        summary={"active_skill_budget": 10, "standard_errors": "HC3"}, path="gate",
    )  # fmt: skip
    ranked = sorted((i for i in items if i[0] != REWRITE[0]), key=lambda i: -i[3])
    ranks = {item[0]: place for place, item in enumerate(ranked, 1)}
    rows = []
    for order, (intervention, title, logical, value, kind, operation) in enumerate(items):
        status = "selected" if value > 0 else "retired" if kind == "current" else "rewrite_loser"
        share = 1 / (1 + sum(other[2] == logical for other in items))
        shown = sum(rng.random() < share for _ in range(n))
        rows.append(
            Contribution(
                gate=gate, order=order, intervention_id=intervention, logical_chunk_id=logical,
                operation=operation, kind=kind, title=title, coefficient=value, se=0.021,
                low=value - 0.041, high=value + 0.041, rank=ranks.get(intervention), status=status,
                with_n=shown, without_n=n - shown,
            )
        )  # fmt: skip
    Contribution.objects.bulk_create(rows)
    kept = [(i[2], i[1], i[3]) for i in items if i[3] > 0]
    return [(k, ("Open the details page whenever the material is not shown" if k == "open-details" else t), v) for k, t, v in kept]  # fmt: skip


def make_trace(
    episode_id: str,
    task_id: int,
    sample: int,
    chunks: Sequence[tuple[str, str, float]],
    *,
    success: bool = True,
    split: str = "val",
    instruction: str = "A foldable vintage bottle by tarn, copper, size s, at most 27",
    content: str = "open #1",
) -> dict[str, Any]:
    """A trace in the slim layout: search, open, select, buy."""
    product = {
        "asin": "100000000001", "title": "tarn vintage bottle", "brand": "tarn", "category": "bottle",
        "price": "25", "key_attributes": ["vintage", "copper"],
    }  # fmt: skip
    results = {
        "page_type": "search_results", "search_available": False, "search_text": "tarn vintage bottle",
        "page": 1, "total_pages": 3, "total_results": 9, "actions": ["next >", "100000000001"],
        "products": [{**product, "rank": r, "title": f"{product['title']} {r}"} for r in range(1, 7)],
    }  # fmt: skip
    detail = {
        "page_type": "product_detail", "search_available": False, "product": product,
        "available_options": {"size": ["s", "m", "l"], "colour": ["white", "pink"]},
        "selected_options": {}, "missing_option_axes": ["size"], "actions": ["size=s"],
    }  # fmt: skip
    bought = {
        **detail,
        "selected_options": {"size": "s"},
        "missing_option_axes": [],
        "selected_price": 25.0,
    }
    calls: list[tuple[str, dict[str, str], Mapping[str, Any], str]] = [
        ("search", {"query": "tarn vintage bottle"}, results, "search tarn vintage bottle"),
        ("click", {"value": "100000000001"}, detail, content),
        ("click", {"value": "size=s"}, bought, "select s"),
        ("click", {"value": "buy now"}, {"page_type": "terminal", "actions": []}, "buy"),
    ]
    steps = []
    for i, (name, arguments, state, text) in enumerate(calls):
        steps.append(
            {
                "step_index": i + 1,
                "observation": f"page {i} <b>of the shop</b>",
                "model": {
                    "content": text, "reasoning": "", "finish_reason": "stop",
                    "tool_calls": [{"call_id": "c", "name": name, "arguments": arguments}],
                    "usage": {"completion_tokens": 4}, "latency_ms": 1.5,
                },
                "action": f"{name}[{next(iter(arguments.values()))}]",
                "environment": {
                    "done": i == 3, "reward": float(success) if i == 3 else 0.0,
                    "observation_state": state, "action_feedback": {"valid": True, "reason": "executed"},
                },
            }
        )  # fmt: skip
    parts = dict.fromkeys(("r_type", "r_att", "r_option", "r_loose"), 1.0)
    return {
        "schema_version": "shopsimrl-episode-v4",
        "layout": "slim-v1",
        "episode_id": episode_id,
        "status": "completed",
        "job": {"task_id": task_id, "sample_id": sample, "seed": 1, "split": split},
        "provenance": {"skills": {"provider": "none"}},
        "reset": {"task_instruction": instruction, "user_persona": {"brand": "tarn", "size": "s"}},
        "selected_skills": [
            {"skill_id": c[0], "content": chunk_text(c[1]), "version": "1", "metadata": {"title": c[1]}}
            for c in chunks
        ],
        "conversation": [
            {"role": "system", "content": "You shop for a person."},
            {"role": "user", "content": f"Task: {instruction}"},
        ],
        "steps": steps,
        "final": {
            "done": True,
            "reward": float(success),
            "reward_detail": {**parts, "r_price": float(success), "r_strict": float(success), "r_success": float(success)},
            "purchase": {"asin": "100000000001", "price": 25.0 if success else 31.0},
            "goal": {"asin": "100000000001", "price_upper": 27},
            "termination_reason": "purchase",
            "observation": "the end",
        },
        "error": None,
        "tokens": {
            "total": 122, "sampled": 16, "log_prob_mean": -0.21, "log_prob_min": -1.7,
            "token_ids": list(range(122)), "sampled_spans": [[100, 116]], "log_probs": [-0.21] * 16,
        },
    }  # fmt: skip


def _row(round_: Round, trace: Mapping[str, Any], path: str, line: int, **fields: Any) -> Episode:
    final = trace["final"]
    detail = final["reward_detail"]
    ids = [c["skill_id"] for c in trace["selected_skills"]]
    return Episode(
        experiment=round_.experiment, round=round_, episode_id=trace["episode_id"], status="completed",
        sample_id=trace["job"]["sample_id"], task_id=trace["job"]["task_id"], split=trace["job"]["split"],
        skill_ids=ids, skill_count=len(ids), reward=final["reward"], success=detail["r_success"] == 1.0,
        scored=True, termination=final["termination_reason"], turns=len(trace["steps"]), tokens=16,
        protocol_errors=1 if line % 17 == 3 else 0, instruction=trace["reset"]["task_instruction"],
        path=path, line=line, **{k: v for k, v in detail.items()}, **fields,
    )  # fmt: skip


def _write(round_: Round, path: str, traces: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(t, ensure_ascii=False) + "\n" for t in traces).encode()
    file = round_.experiment.folder / path
    write_bytes(file, gzip.compress(text) if path.endswith(".gz") else text)
