"""From pairs to a judgement: estimates, inference, decisions, shrunk effects, documents.

The documents have the published ones' keys, so that whatever reads those reads these; what the
profile adds stands in further keys of the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer.gate.artefacts import contributions_document
from trainer.gate.assignment import Assignment
from trainer.gate.judgement import Json, Judgement
from trainer.gate.selection import Selection, Status, Verdict, in_prompt_order
from trainer.gate.slots import Layout
from trainer.gate.standard.analysis import analyse
from trainer.gate.standard.decision import Decision
from trainer.gate.standard.documents import estimates, inference_document, observations_table
from trainer.gate.standard.estimate import Pairs
from trainer.gate.standard.settings import StandardSettings

CONTRIBUTIONS_SCHEMA = "intraskill-chunk-contributions-v1"
ESTIMATOR: Json = {
    "name": "task_difference_ols_bare_adjusted",
    "formula": "y_i0 - y_i1 = (C_i0 - C_i1)^T beta + gamma (b_i - mean b) T_i + epsilon_i",
    "fit_intercept": False,
    "baseline": "complementary_masked_rollout_of_the_same_task",
    "primary_outcome": "reward",
    "rewrite_rule": "rewrite_must_beat_absence_and_old_version",
    "selection_rule": "adopt_on_evidence_keep_hold_retire_on_evidence",
}
PROTOCOL: Json = {
    "masked_rollouts_per_task": 2,
    "masking": "complementary_pairs_balanced_slots_random_order",
    "rewrite_treatment": "mutually_exclusive_absent_old_new",
    "estimator": ESTIMATOR["name"],
    "formula": ESTIMATOR["formula"],
    "selection": ESTIMATOR["selection_rule"],
}


def select(
    layout: Layout,
    coefficients: Mapping[str, float],
    effects: Mapping[str, float],
    decisions: Mapping[str, Decision],
    budget: int,
) -> Selection:
    """The selection that follows from decisions: adopted before kept before held, best first."""
    winners: dict[str, str] = {}
    for slot in layout.slots:
        adopted = [v for v in slot.versions if decisions[v] == "adopt"]
        first = slot.old_version_id or slot.versions[0]
        winners[slot.slot_id] = max(adopted, key=lambda v: coefficients[v], default=first)
    ranked = sorted(winners.values(), key=lambda v: (-effects[v], v))
    staying = [v for v in ranked if decisions[v] in ("adopt", "keep", "hold")]
    by_claim = sorted(staying, key=lambda v: decisions[v] == "hold")  # stable: best first
    kept = by_claim[:budget]
    verdicts: dict[str, Verdict] = {}
    for name in layout.columns:
        status: Status
        if name in kept:
            status = "held" if decisions[name] == "hold" else "selected"
        elif name in staying:
            status = "budget_excluded"
        elif name not in ranked and decisions[name] != "reject":
            status = "rewrite_loser"
        else:
            status = "retired" if layout.interventions[name].kind == "current" else "not_adopted"
        rank = ranked.index(name) + 1 if name in ranked else None
        verdicts[name] = Verdict(name, coefficients[name], effects[name], rank, status)
    return Selection(verdicts, winners, in_prompt_order(layout, kept))


def judge(
    layout: Layout,
    rows: Sequence[Assignment],
    pairs: Pairs,
    settings: StandardSettings,
    *,
    dropped: Sequence[str],
    budget: int,
    label: str,
    pool_sha256: str,
    assignment_sha256: str,
    bare_baseline: Json,
    decided: Mapping[str, Decision] | None = None,
) -> Judgement:
    """Decide and document a gate.

    ``label`` seeds the resampling; ``decided`` holds the decisions of earlier looks, which stand.
    """
    analysis = analyse(layout, pairs, settings)
    decisions = {**analysis.decisions.named(layout), **(decided or {})}
    columns = layout.columns
    coefficients = dict(zip(columns, analysis.beta.tolist(), strict=True))
    effects = dict(zip(columns, analysis.shrunk.mean.tolist(), strict=True))
    selection = select(layout, coefficients, effects, decisions, budget)
    inference = inference_document(layout, analysis, decisions, settings, label)
    contributions = contributions_document(
        layout,
        selection,
        estimator=ESTIMATOR,
        pool_sha256=pool_sha256,
        assignment_sha256=assignment_sha256,
        requested=len(rows),
        dropped=dropped,
        budget=budget,
        estimated=estimates(analysis),
        observations_table=observations_table(rows, pairs),
        bare_baseline=bare_baseline,
        schema=CONTRIBUTIONS_SCHEMA,
    )
    extras = {row["intervention_id"]: row for row in inference["rows"]}
    for row in contributions["contributions"]:
        row |= {k: v for k, v in extras[row["intervention_id"]].items() if k != "outcomes"}
    extra = {"standard": settings.model_dump()}
    return Judgement(selection, ESTIMATOR, contributions, inference, extra)
