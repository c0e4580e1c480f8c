"""Every value of every file a gate reads, replaced by what nobody expects: one clear error each."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.gate.builders import (
    bare_run,
    masked_run,
    plan_of,
    pool_json,
    pool_of,
    trace_of,
)
from trainer.canonical import fingerprint
from trainer.cli.main import main
from trainer.errors import InputError
from trainer.files import write_json
from trainer.gate.assignment import draw_assignments
from trainer.gate.cold_start import active_bank, load_draft, select_draft
from trainer.gate.evaluations import load_run
from trainer.gate.finished import load_finished, require_unchanged
from trainer.gate.ledger import append_proposals, attach_results, load_ledger
from trainer.gate.pairing import load_baseline, pair
from trainer.gate.planner import plan_summary
from trainer.gate.pool import load_pool
from trainer.gate.published.judge import judge
from trainer.gate.refit import refit
from trainer.gate.selection import select
from trainer.gate.slots import build_layout

Json = dict[str, Any]
Way = tuple[str | int, ...]
MISSING, TWICE = object(), object()
HOSTILE: list[Any] = [None, True, -1, 0.5, 10**400, 1e308, "", " ", "\ud800", [], {}, [None], [{}]]
HOSTILE += [MISSING, TWICE]
TASKS = list(range(100, 124))


def ways(document: Any, way: Way = ()) -> Iterator[Way]:
    """The way to each value; of long lists, to the first two."""
    if way:
        yield way
    items: Any = enumerate(document[:2]) if isinstance(document, list) else ()
    for key, value in document.items() if isinstance(document, dict) else items:
        yield from ways(value, (*way, key))


def broken(document: Any, way: Way, value: Any) -> Any:
    document = copy.deepcopy(document)
    place = document
    for key in way[:-1]:
        place = place[key]
    if value is MISSING:
        del place[way[-1]]
    elif value is not TWICE:
        place[way[-1]] = value
    elif isinstance(place, list):
        place.append(place[way[-1]])
    return document


def hashed(value: Any) -> str:
    try:
        return fingerprint(value)
    except ValueError:  # such as half of a surrogate pair
        return ""


def attack(document: Any, use: Callable[[Any], object]) -> None:
    """``use`` takes the whole document, and of each broken one makes sense or an InputError."""
    use(document)
    refused = 0
    for way in ways(document):
        for value in HOSTILE:
            try:
                use(broken(document, way, value))
            except InputError as error:
                refused += 1
                assert "\n" not in str(error), way
                assert error.file or error.field, way
    assert refused > 20


def test_a_hostile_pool_is_refused(tmp_path: Path) -> None:
    def use(document: Any) -> None:
        unsealed = {k: v for k, v in document.items() if k not in ("created_at", "pool_sha256")}
        sealed = {**document, "pool_sha256": hashed(unsealed)}
        (tmp_path / "pool.json").write_text(json.dumps(sealed))
        pool = load_pool(tmp_path / "pool.json")
        for profile in ("published", "standard"):
            plan_summary(
                pool,
                task_ids=TASKS,
                split="val",
                experiment_seed=1,
                mask_seed=1,
                profile=profile,
                sd=0.3,
            )

    attack(pool_json(["a"], {"a": ["new a"]}, ["more"]), use)


def test_a_hostile_plan_is_refused(tmp_path: Path) -> None:
    folder = bare_run(tmp_path, TASKS[:4])

    def use(plan: Any) -> None:
        manifest = {"plan": plan, "plan_fingerprint": hashed(plan)}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        load_baseline(folder, plan_of(TASKS[:4]))

    attack(plan_of(TASKS[:4]), use)


def test_a_hostile_trace_is_refused(tmp_path: Path) -> None:
    folder = bare_run(tmp_path, TASKS[:4])
    plan = plan_of(TASKS[:4])
    whole = [trace_of(plan, task, 0.5) for task in TASKS[:4]]

    def use(trace: Any) -> None:
        traces = [whole[0], trace, *whole[2:]]
        (folder / "traces.jsonl").write_text("".join(json.dumps(t) + "\n" for t in traces))
        load_baseline(folder, plan)

    attack(whole[1], use)


def test_a_hostile_ledger_is_refused(tmp_path: Path) -> None:
    pool = pool_of(["a"], {"a": ["new a"]}, ["more"])
    layout = build_layout(pool)
    selection = select(layout, dict.fromkeys(layout.columns, 0.1), 3)

    def use(row: Any) -> None:
        (tmp_path / "ledger.jsonl").write_text(json.dumps(row) + "\n")
        rows = attach_results(
            load_ledger(tmp_path / "ledger.jsonl"),
            pool,
            selection,
            evaluation_checkpoint="c",
            estimator="e",
            bare_observations_sha256="b",
            assignment_sha256="a",
        )
        write_json(tmp_path / "after.json", rows)

    row = append_proposals([], pool)[0]
    attack(row | {"validation_history": [{"assignment_sha256": "0"}]}, use)


def test_a_hostile_draft_or_its_bank_is_refused(tmp_path: Path) -> None:
    names = ("a", "b")
    bank = {
        "metadata": {"active_skill_budget": 1},
        "skills": [
            {"skill_id": name, "content": "text", "metadata": {"draft_only": True, "title": "t"}}
            for name in names
        ],
    }
    draft = {
        "schema_version": "shopsimrl-initial-skill-draft-v2",
        "active_skill_budget": 1,
        "chunks": [
            {"draft_order": order, "chunk_id": name, "content": "text"}
            for order, name in enumerate(names, 1)
        ],
    }

    def use(documents: Any) -> None:
        for name, value in documents.items():
            (tmp_path / name).write_text(json.dumps(value))
        found = load_draft(tmp_path / "bank", tmp_path / "draft")
        drawn = select_draft(found, dict.fromkeys(names, 0.1))
        write_json(tmp_path / "next.json", active_bank(found, drawn))

    attack(bank, lambda broken: use({"bank": broken, "draft": draft}))
    attack(draft, lambda broken: use({"bank": bank, "draft": broken}))


@pytest.fixture
def contributions(tmp_path: Path) -> Json:
    layout = build_layout(pool_of(["a"], {"a": ["new a"]}, ["more"]))
    rng = np.random.default_rng(5)
    rows = draw_assignments(
        layout, task_ids=TASKS, split="val", experiment_seed=20260830, mask_seed=4
    )
    bare_run(tmp_path / "bare", TASKS, lambda _: float(rng.random()))
    masked_run(tmp_path / "masked", rows, lambda _: float(rng.random()))
    baseline = load_baseline(tmp_path / "bare", plan_of(TASKS))
    observations, dropped = pair(rows, load_run(tmp_path / "masked"), baseline)
    judged = judge(
        layout,
        observations,
        dropped=dropped,
        budget=10,
        pool_sha256="0",
        assignment_sha256="0",
        bare_baseline={},
    )
    document = judged.contributions
    for row in document["contributions"]:  # nobody reads these
        del row["auxiliary_coefficients"], row["rank"]
    return document


def test_a_hostile_finished_gate_is_refused(tmp_path: Path, contributions: Json) -> None:
    folder = tmp_path / "gate"
    folder.mkdir()

    def use(document: Any) -> None:
        (folder / "contributions.json").write_text(json.dumps(document))
        gate = load_finished(folder)
        for profile in ("published", "standard"):
            json.dumps(refit(gate, profile=profile), allow_nan=False)

    read = ("schema_version", "active_skill_budget", "contributions", "observations_table")
    attack({key: contributions[key] for key in read}, use)


def test_a_hostile_manifest_of_a_gate_is_refused(tmp_path: Path, contributions: Json) -> None:
    write_json(tmp_path / "contributions.json", contributions)

    def use(manifest: Any) -> None:
        (tmp_path / "online_gate_manifest.json").write_text(json.dumps(manifest))
        require_unchanged(tmp_path)

    output = {"contributions_sha256": fingerprint(contributions)}
    attack({"status": "complete", "output": output}, use)
    write_json(tmp_path / "contributions.json", [])
    with pytest.raises(InputError, match=r"contributions\.json: must be an object"):
        require_unchanged(tmp_path)


def test_a_gate_that_has_not_ended_cannot_be_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(tmp_path / "online_gate_manifest.json", {"status": "incomplete", "output": None})
    assert main(["gate", "fit", str(tmp_path)]) == 2
    assert "the gate has not ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ("--tasks 0 --sd 0.3", "--tasks"),
        ("--tasks 1000000 --sd 0.3", "--tasks"),
        ("--tasks 400 --sd nan", "--sd"),
        ("--tasks 400 --sd 0", "--sd"),
        ("--tasks 400 --sd 0.3 --effect 0", "--effect"),
        ("--tasks 400 --sd 0.3 --effect 1e-300", "--effect (effect)"),
        ("--tasks 400 --sd 0.3 --slots 0", "--slots"),
        ("--tasks 400 --sd 0.3 --slots 65", "--slots"),
        ("--tasks 400 --sd 0.3 --slots 2 --rewrites 1 1 1", "--rewrites"),
        ("--tasks 9 --sd 0.3", "assignments"),
        ("--tasks 400", "--sd"),
        ("--tasks 400 --sd 0.3 --pool pool.json --slots 3", "--slots"),
        ("--tasks 400 --gate gate --additions 1", "--additions"),
        ("--tasks 400 --gate gate --pool pool.json", "--pool"),
    ],
)
def test_power_names_the_flag_that_makes_no_sense(
    flags: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "power", *flags.split()]) == 2
    assert capsys.readouterr().err.startswith(f"error: {field}: ")
