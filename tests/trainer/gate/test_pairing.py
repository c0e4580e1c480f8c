from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.gate.builders import (
    Json,
    bare_run,
    masked_run,
    plan_of,
    pool_of,
    trace_of,
    write_run,
)
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl, write_json, write_jsonl
from trainer.gate.assignment import Assignment, draw_assignments
from trainer.gate.evaluations import load_run
from trainer.gate.pairing import load_baseline, pair
from trainer.gate.slots import build_layout

TASKS = list(range(100, 108))


@pytest.fixture
def rows() -> tuple[Assignment, ...]:
    layout = build_layout(pool_of(["a", "b"]))
    return draw_assignments(
        layout, task_ids=TASKS, split="val", experiment_seed=20260830, mask_seed=5
    )


def value_of(row: Assignment) -> float:
    return 0.5 + 0.1 * len(row.included)


def change_plan(folder: Path, change: Callable[[Json], None]) -> None:
    plan = read_json(folder / "manifest.json")["plan"]
    change(plan)
    write_json(folder / "manifest.json", {"plan": plan, "plan_fingerprint": fingerprint(plan)})


def change_traces(folder: Path, change: Callable[[list[Json]], object]) -> None:
    traces = [dict(trace) for trace in read_jsonl(folder / "traces.jsonl")]
    change(traces)
    write_jsonl(folder / "traces.jsonl", traces)


def test_pairs_are_formed_in_assignment_order_whatever_the_trace_order(
    tmp_path: Path, rows: tuple[Assignment, ...]
) -> None:
    baseline = load_baseline(bare_run(tmp_path / "bare", TASKS), plan_of(TASKS))
    masked_run(tmp_path / "masked", rows, value_of)
    change_traces(tmp_path / "masked", lambda traces: traces.reverse())
    observations, dropped = pair(rows, load_run(tmp_path / "masked"), baseline)
    assert [o.assignment.task_id for o in observations] == TASKS
    assert dropped == []
    record = observations[0].to_record(["a", "b"])
    assert record["delta_reward"] == record["reward"] - record["bare_reward"]
    assert list(record["reward_detail"]) == ["r_strict", "r_success", "r_type"]


def test_the_baseline_record_holds_hash_counts_and_means(tmp_path: Path) -> None:
    folder = bare_run(tmp_path / "bare", TASKS, lambda task: (task % 2) / 2)
    record = load_baseline(folder, plan_of(TASKS), name="validate/bare").record
    assert record["run_dir"] == "validate/bare"
    assert (record["observations"], record["dropped_observations"]) == (8, 0)
    assert record["checkpoint_id"] == "round-000-checkpoint"
    assert record["mean_outcomes"]["reward"] == 0.25
    kept = [
        {k: t[k] for k in ("episode_id", "job", "provenance", "selected_skills", "final")}
        for t in read_jsonl(folder / "traces.jsonl")
    ]
    assert record["observations_sha256"] == fingerprint(kept)


def test_transport_concurrency_and_split_path_may_differ(tmp_path: Path) -> None:
    expected = plan_of(TASKS)
    expected["model"] = {**expected["model"], "transport": {"timeout_seconds": 99}}
    expected["runtime"] = {**expected["runtime"], "concurrency": 64}
    expected["task_split"] = {**expected["task_split"], "source_path": "/there"}
    assert load_baseline(bare_run(tmp_path / "bare", TASKS), expected).run.traces


def test_seeds_may_differ_when_the_model_is_not_told_them(tmp_path: Path) -> None:
    unsent = plan_of(TASKS)
    unsent["model"]["sampling"]["send_seed"] = False
    other = copy.deepcopy(unsent)
    for job in other["jobs"]:
        job["seed"] += 1
    folder = write_run(tmp_path / "bare", unsent, [trace_of(unsent, task, 0.5) for task in TASKS])
    assert load_baseline(folder, other)
    other["jobs"][0]["sample_id"] = 1
    with pytest.raises(InputError, match=r"plan\.jobs"):
        load_baseline(folder, other)


def test_seeds_must_agree_when_the_model_is_told_them(tmp_path: Path) -> None:
    other = plan_of(TASKS)
    other["jobs"][0]["seed"] += 1
    with pytest.raises(InputError, match=r"plan\.jobs"):
        load_baseline(bare_run(tmp_path / "bare", TASKS), other)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("model", "checkpoint_id", "another"),
        ("model", "sampling", {"temperature": 0.6, "send_seed": True}),
        ("prompt", "prompt_version", "v3"),
        ("environment", "persona", False),
        ("runtime", "max_steps", 11),
        ("task_split", "name", "test"),
    ],
)
def test_a_bare_run_under_other_conditions_is_refused(
    tmp_path: Path, section: str, key: str, value: object
) -> None:
    expected = plan_of(TASKS)
    expected[section] = {**expected[section], key: value}
    with pytest.raises(InputError) as caught:
        load_baseline(bare_run(tmp_path / "bare", TASKS), expected)
    assert caught.value.field == f"plan.{section}"


def test_a_missing_extra_or_repeated_task_is_refused(tmp_path: Path) -> None:
    folder = bare_run(tmp_path / "bare", TASKS)
    for tasks in (TASKS[1:], [*TASKS, 900], [TASKS[0], *TASKS]):
        expected = plan_of(tasks)
        expected["task_split"]["task_count"] = len(TASKS)
        with pytest.raises(InputError, match=r"plan\.jobs"):
            load_baseline(folder, expected)


def _equip(plan: Json) -> None:
    plan["skills"] = {"provider": "json_skillbank"}


def _unname(plan: Json) -> None:
    plan["model"]["checkpoint_id"] = ""


def test_the_baseline_must_be_bare_and_name_its_checkpoint(tmp_path: Path) -> None:
    folder = bare_run(tmp_path / "bare", TASKS)
    change_plan(folder, _equip)
    with pytest.raises(InputError, match="must be bare"):
        load_baseline(folder, plan_of(TASKS))
    unnamed = plan_of(TASKS)
    _unname(unnamed)
    folder = write_run(tmp_path / "b", unnamed, [trace_of(unnamed, t, 0.5) for t in TASKS])
    with pytest.raises(InputError, match="checkpoint_id"):
        load_baseline(folder, unnamed)
    assert load_baseline(folder, unnamed, require_checkpoint=False)


def test_an_edited_plan_and_a_missing_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json"):
        load_baseline(tmp_path / "none", plan_of(TASKS))
    folder = bare_run(tmp_path / "bare", TASKS)
    manifest = read_json(folder / "manifest.json")
    manifest["plan"]["runtime"]["max_steps"] = 2
    write_json(folder / "manifest.json", manifest)
    with pytest.raises(InputError, match="plan_fingerprint"):
        load_baseline(folder, plan_of(TASKS))


def _set(trace: Json, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for key in way:
        trace[key] = dict(trace[key])
        trace = trace[key]
    trace[last] = value


BROKEN_TRACES: list[tuple[str, str, Any]] = [
    ("job", "job.task_id", 1),
    ("seed", "job.seed", 1),
    ("split", "job.split", "train"),
    ("equipped", "selected_skills", [{"skill_id": "a"}]),
    ("provider", "provenance.skills", {"provider": "json_skillbank"}),
    ("no model", "provenance.model", {}),
    ("no runtime", "provenance.runtime", None),
    ("checkpoint", "provenance.model.checkpoint_id", "another"),
    ("sampling", "provenance.model.sampling", {"temperature": 0.0}),
    ("prompt", "provenance.prompt.prompt_version", "v9"),
    ("environment", "provenance.environment.persona", False),
    ("observed", "provenance.environment.observed", "y"),
    ("limit", "provenance.runtime.max_steps", 1),
    ("nan", "final.reward_detail.r_type", float("inf")),
    ("bool", "final.reward_detail.r_type", True),
    ("text", "final.reward_detail.r_type", "1"),
    ("strict", "final.reward_detail.r_strict", 0.9),
    ("parts", "final.reward_detail.r_price", 1.0),
    ("no success", "final.reward_detail", {"r_strict": 0.5, "r_type": 1.0}),
]


@pytest.mark.parametrize(("_name", "path", "value"), BROKEN_TRACES, ids=lambda v: str(v)[:20])
def test_a_trace_that_was_not_played_as_planned_is_refused(
    tmp_path: Path, _name: str, path: str, value: Any
) -> None:
    plan = plan_of(TASKS)
    traces = [trace_of(plan, task, 0.5) for task in TASKS]
    _set(traces[3], path, value)
    folder = tmp_path / "bare"
    write_run(folder, plan, traces[:1])
    lines = "".join(_dump(trace) for trace in traces)
    (folder / "traces.jsonl").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError):
        load_baseline(folder, plan)


def _dump(trace: Json) -> str:
    import json

    return json.dumps(trace) + "\n"


def test_a_failed_attempt_before_a_completed_one_is_fine_but_nothing_may_follow(
    tmp_path: Path,
) -> None:
    plan = plan_of(TASKS)
    good = [trace_of(plan, task, 0.5) for task in TASKS]
    failed = trace_of(plan, TASKS[0], 0.0, done=False)
    folder = write_run(tmp_path / "bare", plan, [failed, *good])
    assert load_run(folder).failed == ()
    for extra in (failed, good[0]):
        write_run(folder, plan, [*good, extra])
        with pytest.raises(InputError, match="follows a completed trace"):
            load_run(folder)


def test_an_unplanned_episode_is_refused(tmp_path: Path) -> None:
    plan = plan_of(TASKS)
    folder = write_run(tmp_path / "bare", plan, [trace_of(plan, 999, 0.5)])
    with pytest.raises(InputError, match="no planned job"):
        load_run(folder)


def test_a_pair_without_one_side_is_dropped_and_named(
    tmp_path: Path, rows: tuple[Assignment, ...]
) -> None:
    baseline = load_baseline(bare_run(tmp_path / "bare", TASKS), plan_of(TASKS))
    masked_run(tmp_path / "masked", rows, value_of)
    change_traces(tmp_path / "masked", lambda traces: traces.pop(2))
    observations, dropped = pair(rows, load_run(tmp_path / "masked"), baseline)
    assert (len(observations), dropped) == (7, [rows[2].episode_id])
    change_traces(tmp_path / "masked", lambda traces: traces.clear())
    with pytest.raises(InputError, match="no task has both"):
        pair(rows, load_run(tmp_path / "masked"), baseline)


def test_a_masked_trace_must_show_what_was_assigned_in_order(
    tmp_path: Path, rows: tuple[Assignment, ...]
) -> None:
    baseline = load_baseline(bare_run(tmp_path / "bare", TASKS), plan_of(TASKS))
    both = next(i for i, row in enumerate(rows) if len(row.included) == 2)
    masked_run(tmp_path / "masked", rows, value_of)
    change_traces(
        tmp_path / "masked",
        lambda traces: traces[both].update(selected_skills=[{"skill_id": n} for n in "ba"]),
    )
    with pytest.raises(InputError, match="in this order, as assigned"):
        pair(rows, load_run(tmp_path / "masked"), baseline)


def test_a_masked_trace_must_be_of_the_planned_pool(
    tmp_path: Path, rows: tuple[Assignment, ...]
) -> None:
    baseline = load_baseline(bare_run(tmp_path / "bare", TASKS), plan_of(TASKS))
    masked_run(tmp_path / "masked", rows, value_of)
    another = {"provider": "assigned_json_skillbank", "bank": "another"}
    change_traces(tmp_path / "masked", lambda traces: _set(traces[0], "provenance.skills", another))
    with pytest.raises(InputError, match=r"provenance\.skills"):
        pair(rows, load_run(tmp_path / "masked"), baseline)


def test_the_arms_must_have_equal_conditions_and_parts(
    tmp_path: Path, rows: tuple[Assignment, ...]
) -> None:
    baseline = load_baseline(bare_run(tmp_path / "bare", TASKS), plan_of(TASKS))
    masked_run(tmp_path / "masked", rows, value_of)

    def observe(traces: list[Json]) -> None:
        for trace in traces:
            _set(trace, "provenance.environment.observed", "another shop")

    change_traces(tmp_path / "masked", observe)
    with pytest.raises(InputError, match="different conditions"):
        pair(rows, load_run(tmp_path / "masked"), baseline)
    masked_run(tmp_path / "masked", rows, value_of)

    def add_part(traces: list[Json]) -> None:
        for trace in traces:
            _set(trace, "final.reward_detail.r_price", 1.0)

    change_traces(tmp_path / "masked", add_part)
    with pytest.raises(InputError, match="other reward parts"):
        pair(rows, load_run(tmp_path / "masked"), baseline)
