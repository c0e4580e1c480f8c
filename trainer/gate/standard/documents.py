"""What a standard gate writes down, in the keys of the published documents plus its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.canonical import utc_now
from trainer.gate.artefacts import INFERENCE_SCHEMA, fitted, mean_with_interval
from trainer.gate.assignment import Assignment
from trainer.gate.slots import Layout
from trainer.gate.standard.analysis import Analysis
from trainer.gate.standard.bootstrap import decision_frequency, resampled_effects
from trainer.gate.standard.checks import any_text, lack_of_fit, masked_less_bare
from trainer.gate.standard.decision import NAMES, Decision, Roles, Thresholds
from trainer.gate.standard.estimate import Pairs, contrasts
from trainer.gate.standard.randomisation import randomisation_p
from trainer.gate.standard.settings import StandardSettings
from trainer.means import mean


def estimates(analysis: Analysis) -> dict[str, Any]:
    """Coefficients and means of every outcome, in the keys of a published gate.

    Bare means are over the tasks that have a bare rollout, None without any.
    """
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
    """A row a rollout of a complete pair: its mask and outcomes, and the task's bare ones."""
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
    pairs, fit = analysis.pairs, analysis.fit
    text, fit_check = any_text(pairs, fit), lack_of_fit(pairs)
    rows = zip(
        layout.columns,
        _certainty(analysis),
        _resampled(layout, analysis, settings, label),
        _counts(layout, pairs),
        fitted(fit, pairs.outcomes),
        strict=True,
    )
    return {
        "schema_version": INFERENCE_SCHEMA,
        "created_at": utc_now(),
        "profile": "standard",
        "standard_errors": "HC3, one row a task",
        "degrees_of_freedom": fit.degrees_of_freedom,
        "prior_sd": analysis.shrunk.tau,
        "delta": mean_with_interval(masked_less_bare(pairs)),
        "any_text": text and {**asdict(text), "ci95": list(text.interval())},
        "lack_of_fit": fit_check and asdict(fit_check),
        "contrasts": [
            asdict(each)
            for each in contrasts(layout, layout.columns, analysis.beta, analysis.covariance)
        ],
        "rows": [
            {
                "intervention_id": name,
                **outcomes["reward"],
                **certainty,
                **resampled,
                "decision": decisions[name],
                **counts,
                "outcomes": outcomes,
            }
            for name, certainty, resampled, counts, outcomes in rows
        ],
    }


def _certainty(analysis: Analysis) -> list[dict[str, Any]]:
    """p-values of t tests and shrunk effects of the reward, for every column."""
    p, decided, shrunk = analysis.fit.p_value(), analysis.decisions, analysis.shrunk
    return [
        {
            "p": float(p[j, analysis.pairs.reward]),
            "p_adopt": _number(decided.p[j]),
            "p_adopt_holm": _number(decided.p_holm[j]),
            "shrunk": float(shrunk.mean[j]),
            "shrunk_sd": float(shrunk.sd[j]),
            "p_positive": float(shrunk.positive[j]),
        }
        for j in range(len(p))
    ]


def _resampled(
    layout: Layout, analysis: Analysis, settings: StandardSettings, label: str
) -> list[dict[str, Any]]:
    """Randomisation p-value and how often each decision would be taken again, for every column."""
    Z, d = analysis.pairs.signs, analysis.adjusted_gains
    p = randomisation_p(Z, d, analysis.beta, redraws=settings.redraws, label=label)
    effects = resampled_effects(Z, d, resamples=settings.bootstrap, label=label)
    limits = Thresholds.of(settings, analysis.fit.degrees_of_freedom)
    frequency = decision_frequency(effects, analysis.covariance, Roles.of(layout), limits)
    return [
        {
            "p_randomisation": float(p[j]),
            "decision_frequency": dict(zip(NAMES, frequency[j].tolist(), strict=True)),
        }
        for j in range(len(p))
    ]


def _counts(layout: Layout, pairs: Pairs) -> list[dict[str, int]]:
    """Rollouts with and without each column; ``randomised``: those in which its slot was drawn."""
    drawn = _randomised(layout, pairs)
    return [
        {
            "with_n": int(shown.sum()),
            "without_n": int((1 - shown).sum()),
            "randomised_with_n": int(shown[drawn[:, j]].sum()),
            "randomised_without_n": int((1 - shown[drawn[:, j]]).sum()),
        }
        for j, shown in enumerate(np.moveaxis(pairs.shown, 2, 0))
    ]


def _randomised(layout: Layout, pairs: Pairs) -> NDArray[np.bool_]:
    """In which pairs (n, k) each column's slot was randomised: its states differ only there."""
    differs = pairs.signs != 0
    found = np.zeros(differs.shape, dtype=np.bool_)
    place = {name: j for j, name in enumerate(pairs.columns)}
    for slot in layout.slots:
        columns = [place[version] for version in slot.versions]
        found[:, columns] = differs[:, columns].any(axis=1)[:, None]
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
