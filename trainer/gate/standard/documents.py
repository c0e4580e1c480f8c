"""What a standard gate writes down, in the keys of the published documents plus its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.canonical import utc_now
from trainer.gate.artefacts import INFERENCE_SCHEMA, mean
from trainer.gate.assignment import Assignment
from trainer.gate.slots import Layout
from trainer.gate.standard.analysis import Analysis
from trainer.gate.standard.bootstrap import decision_frequency, resampled_effects
from trainer.gate.standard.checks import any_text, lack_of_fit
from trainer.gate.standard.decision import NAMES, Decision, Roles, Thresholds
from trainer.gate.standard.estimate import Pairs, contrasts
from trainer.gate.standard.randomisation import randomisation_p
from trainer.gate.standard.settings import StandardSettings


def estimates(analysis: Analysis) -> dict[str, Any]:
    pairs, known = analysis.pairs, analysis.pairs.has_bare
    found: dict[str, Any] = {}
    for m, outcome in enumerate(pairs.outcomes):
        coefficients = analysis.fit.beta[:, m].tolist()
        bare = pairs.bare[known, m]
        means = pairs.scores[:, :, m].mean(axis=1)
        found[outcome] = {
            "intercept": 0.0,
            "coefficients": dict(zip(pairs.columns, coefficients, strict=True)),
            "observations": pairs.scores[:, :, m].size,
            "masked_mean": mean(pairs.scores[:, :, m].ravel()),
            "bare_mean": mean(bare) if len(bare) else None,
            "delta_mean": mean(means[known] - bare) if len(bare) else None,
            "bare_observations": len(bare),
        }
    return found


def observations_table(rows: Sequence[Assignment], pairs: Pairs) -> list[dict[str, Any]]:
    place = {task: i for i, task in enumerate(pairs.task_ids)}
    table = []
    for row in rows:
        if row.task_id not in place:
            continue
        i = place[row.task_id]
        record = row.to_record(pairs.columns)
        scores = dict(zip(pairs.outcomes, pairs.scores[i, row.sample_id].tolist(), strict=True))
        bare = dict(zip(pairs.outcomes, pairs.bare[i].tolist(), strict=True))
        table.append(
            {
                **{k: record[k] for k in ("episode_id", "split", "task_id", "sample_id", "mask")},
                "included_chunk_ids": record["included_chunk_ids"],
                "reward": scores.pop("reward"),
                "bare_reward": bare.pop("reward") if pairs.has_bare[i] else None,
                "reward_detail": scores,
                "bare_reward_detail": bare if pairs.has_bare[i] else None,
            }
        )
    return table


def inference_document(
    layout: Layout,
    analysis: Analysis,
    decisions: Mapping[str, Decision],
    settings: StandardSettings,
    label: str,
) -> dict[str, Any]:
    """``inference.json``: intervals, p-values, contrasts, shrunk effects, frequencies, checks."""
    pairs, fit, at = analysis.pairs, analysis.fit, analysis.pairs.reward
    limits = Thresholds.of(settings, fit.degrees_of_freedom)
    p_random = randomisation_p(
        pairs.signs, analysis.adjusted_gains, analysis.beta, redraws=settings.redraws, label=label
    )
    resampled = resampled_effects(
        pairs.signs, analysis.adjusted_gains, resamples=settings.bootstrap, label=label
    )
    frequency = decision_frequency(resampled, analysis.covariance, Roles.of(layout), limits)
    low, high = fit.interval()
    text, fit_check = any_text(pairs, fit), lack_of_fit(pairs)
    shown = pairs.shown.sum(axis=(0, 1))
    randomised = _randomised(layout, pairs)
    rows = []
    for j, name in enumerate(layout.columns):
        rows.append(
            {
                "intervention_id": name,
                "coefficient": float(fit.beta[j, at]),
                "se": float(fit.standard_error[j, at]),
                "ci95": [float(low[j, at]), float(high[j, at])],
                "p": float(fit.p_value()[j, at]),
                "p_randomisation": float(p_random[j]),
                "p_adopt": _number(analysis.decisions.p[j]),
                "p_adopt_holm": _number(analysis.decisions.p_holm[j]),
                "shrunk": float(analysis.shrunk.mean[j]),
                "shrunk_sd": float(analysis.shrunk.sd[j]),
                "p_positive": float(analysis.shrunk.positive[j]),
                "decision": decisions[name],
                "decision_frequency": dict(zip(NAMES, frequency[j].tolist(), strict=True)),
                "with_n": int(shown[j]),
                "without_n": int(2 * len(pairs.task_ids) - shown[j]),
                "randomised_with_n": int(pairs.shown[randomised[:, j], :, j].sum()),
                "randomised_without_n": int((1 - pairs.shown[randomised[:, j], :, j]).sum()),
                "outcomes": {
                    outcome: {
                        "coefficient": float(fit.beta[j, m]),
                        "se": float(fit.standard_error[j, m]),
                        "ci95": [float(low[j, m]), float(high[j, m])],
                    }
                    for m, outcome in enumerate(pairs.outcomes)
                },
            }
        )
    return {
        "schema_version": INFERENCE_SCHEMA,
        "created_at": utc_now(),
        "profile": "standard",
        "standard_errors": "HC3, one row a task",
        "degrees_of_freedom": fit.degrees_of_freedom,
        "prior_sd": analysis.shrunk.tau,
        "delta": _delta(pairs),
        "any_text": text and {**asdict(text), "ci95": list(text.interval())},
        "lack_of_fit": fit_check and asdict(fit_check),
        "contrasts": [
            asdict(each)
            for each in contrasts(layout, layout.columns, analysis.beta, analysis.covariance)
        ],
        "rows": rows,
    }


def _randomised(layout: Layout, pairs: Pairs) -> NDArray[np.bool_]:
    """In which pairs (n, k) each column's slot was randomised: its states differ only there."""
    differs = pairs.signs != 0
    found = np.zeros(differs.shape, dtype=np.bool_)
    place = {name: j for j, name in enumerate(pairs.columns)}
    for slot in layout.slots:
        columns = [place[version] for version in slot.versions]
        found[:, columns] = differs[:, columns].any(axis=1)[:, None]
    return found


def _delta(pairs: Pairs) -> dict[str, Any]:
    """Mean of masked minus bare over the tasks that have both, with a 95 % interval."""
    known = pairs.has_bare
    if known.sum() < 2:
        return {"mean": None, "ci95": None}
    gain = pairs.scores[known, :, pairs.reward].mean(axis=1) - pairs.bare[known, pairs.reward]
    half = 1.96 * float(np.std(gain, ddof=1)) / len(gain) ** 0.5
    return {"mean": mean(gain), "ci95": [mean(gain) - half, mean(gain) + half]}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
