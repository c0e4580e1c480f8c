"""Gates → coefficients with their errors, checked by fitting again.

Where ``contributions.json`` is there, coefficients are fitted from its observations and compared
with those stored. Without it (a published folder may hold the table of coefficients only) the masks
are drawn again from their seeds, and the hash must come out. Specification: gate-analysis.md §§3-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.analysis.contrasts import summary_figures
from trainer.analysis.reader import Reader
from trainer.analysis.schema_rounds import Coefficient, Gate
from trainer.analysis.schema_values import Figure
from trainer.compare.bootstrap import published_interval
from trainer.gate.assignment import assignment_document, design_matrix, draw_assignments
from trainer.gate.pool import load_pool
from trainer.gate.refit import FinishedGate, load_finished, refit, scores
from trainer.gate.slots import build_layout

Json = Mapping[str, Any]
EXPERIMENT_SEED = 20260830  # of the published run; that the recorded hash comes out proves it
BEHAVIOUR = ("steps_mean", "model_steps", "protocol_errors", "invalid_actions", "total_actions")


def fitted(
    reader: Reader, number: int, folder: str, titles: Mapping[str, str]
) -> tuple[Gate, list[Coefficient]]:
    """A gate that holds its observations. Raises InputError when it cannot be fitted again."""
    name = f"{folder}/contributions.json"
    reader.note(name)
    gate = load_finished(reader.root / folder)
    document = reader.json(name)
    inference = reader.json(f"{folder}/inference.json") or {"rows": []}
    again = refit(gate)
    rows = {row["intervention_id"]: row for row in inference["rows"]}
    refitted = {row["intervention_id"]: row for row in again["contributions"]}
    coefficients = []
    for row in document["contributions"]:
        known = row["intervention_id"]
        fit, inferred = refitted[known], rows.get(known, {})
        low, high = inferred.get("ci95") or fit["ci95"]
        coefficients.append(
            _coefficient(number, row, titles.get(known, known), name,
                         se=inferred.get("se", fit["se"]), low=low, high=high,
                         with_n=inferred.get("with_n"), without_n=inferred.get("without_n"),
                         n=document["observations"],
                         components=row.get("auxiliary_coefficients") or {})
        )  # fmt: skip
    manifest = reader.json(f"{folder}/online_gate_manifest.json") or {}
    estimates = document["estimates"]
    delta, interval = _delta(gate, inference)
    return (
        Gate(
            round=number,
            profile=gate.profile,
            status=str(manifest.get("status", "complete")),
            n=document["observations"],
            columns=len(coefficients),
            bare={k: _figure(v["bare_mean"], v.get("bare_observations", v["observations"]),
                             "bare episodes", name) for k, v in estimates.items()},
            masked={k: _figure(v["masked_mean"], v["observations"], "masked episodes", name)
                    for k, v in estimates.items()},
            delta=_figure(delta, len({r["task_id"] for r in gate.rows}), "tasks", name),
            delta_interval=interval,
            behaviour=_behaviour(manifest.get("summary"), f"{folder}/online_gate_manifest.json"),
            pool_sha256=document["pool_sha256"],
            assignment_sha256=document["assignment_sha256"],
            selected_bank_sha256=(manifest.get("output") or {}).get(
                "selected_skillbank_sha256", ""
            ),
            rebuilt_assignment_sha256="",
            refit_max_error=again.get("largest_difference"),
            stated_refit_max_error=None,
            condition_number=_condition([row["mask"] for row in gate.rows]),
            source=name,
        ),
        coefficients,
    )  # fmt: skip


def _delta(gate: FinishedGate, inference: Json) -> tuple[float | None, tuple[float, float] | None]:
    """Masked minus bare: the inference's figure, or for a published gate its bootstrap."""
    if gate.profile == "standard":
        delta = inference.get("delta") or {}
        return delta.get("mean"), tuple(delta["ci95"]) if delta.get("ci95") else None
    rows = [r for r in gate.rows if r["sample_id"] == 0 and r["bare_reward"] is not None]
    gaps = (scores(gate, rows) - scores(gate, rows, bare=True))[:, -1]
    return float(gaps.mean()), published_interval(gaps, "reward")


def tabled(
    reader: Reader,
    number: int,
    rows: list[dict[str, str]],
    *,
    names: tuple[str, str, str],
    titles: Mapping[str, str],
    stated: Json,
) -> tuple[Gate | None, list[Coefficient]]:
    """A gate known by a table of coefficients (``names``: table, pool, manifest of the gate)."""
    table, pool, manifest_name = names
    manifest = reader.json(manifest_name)
    masks, rebuilt = _masks(reader, pool, manifest) if manifest else (None, "")
    n = None if masks is None else len(masks)
    coefficients = []
    for place, row in enumerate(rows):
        shown = None if masks is None else int(masks[:, place].sum())
        typed = {**row, "coefficient": float(row["coefficient"]), "order": int(row["order"]),
                 "rank": int(row["rank"]) if row["rank"] else None}  # fmt: skip
        known = row["intervention_id"]
        coefficients.append(
            _coefficient(number, typed, titles.get(known, known), table, se=None, low=None,
                         high=None, with_n=shown, n=n, components={},
                         without_n=None if shown is None or n is None else n - shown)
        )  # fmt: skip
    if manifest is None:
        return _stated_gate(number, coefficients, stated, table), coefficients
    bare, counts = manifest["input"]["bare_baseline"], manifest["summary"]["counts"]
    of_masked = summary_figures(manifest["summary"], manifest_name)
    parts = ("reward", "r_success", *sorted(manifest["summary"]["reward_components"]))
    masked = {k: of_masked[k if k != "r_success" else "success"] for k in parts if k in of_masked}
    masked["r_success"] = of_masked["success"]
    means = bare["mean_outcomes"]
    delta = manifest["summary"]["primary"]["reward_mean"] - means["reward"]
    output = manifest["output"] or {}
    gate = Gate(
        round=number,
        profile="published",
        status=manifest["status"],
        n=counts["scored"],
        columns=len(coefficients),
        bare={k: _figure(v, bare["observations"], "bare episodes", manifest_name)
              for k, v in means.items()},
        masked=masked,
        delta=_figure(delta, counts["scored"], "tasks", manifest_name),
        delta_interval=stated.get("delta_interval"),
        behaviour=_behaviour(manifest["summary"], manifest_name),
        pool_sha256=manifest["input"]["pool_sha256"],
        assignment_sha256=manifest["input"]["assignment_sha256"],
        selected_bank_sha256=output.get("selected_skillbank_sha256", ""),
        rebuilt_assignment_sha256=rebuilt,
        refit_max_error=None,
        stated_refit_max_error=stated.get("refit_max_error"),
        condition_number=None if masks is None else _condition(masks),
        source=manifest_name,
    )  # fmt: skip
    return gate, coefficients


def _stated_gate(number: int, rows: list[Coefficient], stated: Json, table: str) -> Gate | None:
    """A gate of which only the table of coefficients is there."""
    if not rows:
        return None
    return Gate(
        round=number, profile="published", status="complete", n=None, columns=len(rows),
        bare={}, masked={}, delta=_figure(None, None, "tasks", table),
        delta_interval=stated.get("delta_interval"), behaviour={},
        pool_sha256="", assignment_sha256="", selected_bank_sha256="",
        rebuilt_assignment_sha256="", refit_max_error=None,
        stated_refit_max_error=stated.get("refit_max_error"), condition_number=None, source=table,
    )  # fmt: skip


def _masks(
    reader: Reader, pool_name: str, manifest: Json
) -> tuple[NDArray[np.float64] | None, str]:
    """The design drawn again and its hash; no design when the pool is absent or does not fit."""
    if not reader.has(pool_name):
        return None, ""
    pool = load_pool(reader.note(pool_name))
    layout = build_layout(pool)
    seed = manifest["config"]["mask_seed"]
    rows = draw_assignments(
        layout,
        task_ids=manifest["input"]["task_ids"],
        split=manifest["protocol"]["split"],
        experiment_seed=EXPERIMENT_SEED,
        mask_seed=seed,
    )
    document = assignment_document(layout, rows, mask_seed=seed, pool_sha256=pool.pool_sha256)
    rebuilt = str(document["assignment_sha256"])
    same = rebuilt == manifest["input"]["assignment_sha256"]
    return (design_matrix(rows, layout.columns) if same else None), rebuilt


def _condition(masks: Any) -> float:
    return float(np.linalg.cond(np.array(masks, dtype=np.float64)))


def _behaviour(summary: Json | None, source: str) -> dict[str, Figure]:
    if not summary:
        return {}
    found = summary_figures(summary, source)
    return {name: found[name] for name in (*BEHAVIOUR, "completion_tokens") if name in found}


def _figure(value: float | None, n: int | None, of: str, source: str) -> Figure:
    return Figure(value=value, n=n, of=of, source=source)


def _coefficient(number: int, row: Json, title: str, source: str, **rest: Any) -> Coefficient:
    return Coefficient(
        round=number,
        intervention_id=row["intervention_id"],
        kind=row["kind"],
        logical_chunk_id=row["logical_chunk_id"],
        operation=row["operation"] or "",
        order=row["order"],
        title=title,
        coefficient=row["coefficient"],
        rank=row["rank"],
        status=row["status"],
        source=source,
        **rest,
    )
