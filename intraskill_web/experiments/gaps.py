"""What skill in the prompt still adds at a checkpoint: assisted minus skill-free success.

On the tasks that both arms played, with Newcombe's interval for paired proportions
(trainer/compare/paired.py). Two rates of different task sets would also differ by their tasks.
A gap near zero with a narrow interval is what internalised means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.monitoring.statistics import wilson
from trainer.compare.paired import Transitions, newcombe
from trainer.errors import InputError
from trainer.files import read_json

COMPARISONS = "derived/comparisons.json"  # of test arms, task by task; beside the run
TRANSITIONS = ("failure_to_success", "success_to_failure", "both_success", "both_failure")
PURPOSES = ("baseline", "bare", "full", "masked", "test")
Pair = tuple[CheckpointScore, CheckpointScore]
Outcomes = Mapping[tuple[int, str, str], Mapping[tuple[int, int], bool]]

# Of pairs whose episodes are all here, by folders, ids and figures (ids are given again after a
# deletion): they do not change, and a long experiment has tens of thousands of episodes.
_known: dict[tuple[object, ...], Transitions] = {}
MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Gap:
    """Assisted minus skill-free. ``paired`` is None where the episodes are not here: then the
    difference is that of two rates and the interval treats them as independent.
    """

    value: float
    interval: tuple[float, float]
    paired: Transitions | None
    pairs: int


def gaps(experiment: Experiment, pairs: Sequence[Pair]) -> list[Gap]:
    """The gap of each (bare, assisted) pair of scores. One query, none where all is known."""
    tables = [_known.get(_name(experiment, pair)) for pair in pairs]
    missing = [pair for pair, table in zip(pairs, tables, strict=True) if table is None]
    if missing:
        outcomes, documents = _outcomes(experiment, missing), _compared(experiment)
        found = {pair: _table(experiment, pair, outcomes, documents) for pair in missing}
        tables = [t or found[pair] for pair, t in zip(pairs, tables, strict=True)]
    return [_gap(*pair, table) for pair, table in zip(pairs, tables, strict=True)]


def _name(experiment: Experiment, pair: Pair) -> tuple[object, ...]:
    return experiment.folder, *((s.pk, s.path, s.n, s.success, s.reward) for s in pair)


def _table(
    experiment: Experiment, pair: Pair, outcomes: Outcomes, documents: Sequence[Mapping[str, Any]]
) -> Transitions | None:
    played = [outcomes.get(_key(score), {}) for score in pair]
    table = _paired(*played)
    if table is None:
        return _recorded(*pair, documents)
    if [len(one) for one in played] == [score.n for score in pair]:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[_name(experiment, pair)] = table
    return table


def _outcomes(experiment: Experiment, pairs: Sequence[Pair]) -> Outcomes:
    """Successes of scored evaluation episodes by (round, purpose, arm), then task and sample."""
    found: dict[tuple[int, str, str], dict[tuple[int, int], bool]] = {}
    rows = Episode.objects.filter(
        experiment=experiment,
        round__in={score.round_id for pair in pairs for score in pair},
        purpose__in=PURPOSES,
        scored=True,
    ).values_list("round_id", "purpose", "arm", "task_id", "sample_id", "success")
    for round_id, purpose, arm, task, sample, success in rows.iterator():
        found.setdefault((round_id, purpose, arm), {})[task, sample] = bool(success)
    return found


def _paired(
    first: Mapping[tuple[int, int], bool], second: Mapping[tuple[int, int], bool]
) -> Transitions | None:
    """From the episodes of both arms."""
    shared = first.keys() & second.keys()
    if not shared:
        return None
    return Transitions(
        gain=sum(not first[k] and second[k] for k in shared),
        loss=sum(first[k] and not second[k] for k in shared),
        both=sum(first[k] and second[k] for k in shared),
        neither=sum(not first[k] and not second[k] for k in shared),
    )


def _compared(experiment: Experiment) -> list[dict[str, Any]]:
    """The comparisons of test arms that an import has computed task by task."""
    try:
        return list(read_json(experiment.folder / COMPARISONS))
    except InputError:
        return []


def _recorded(
    bare: CheckpointScore, assisted: CheckpointScore, documents: Sequence[Mapping[str, Any]]
) -> Transitions | None:
    """From the comparison of exactly these two test arms, known by both success rates."""
    for document in documents if bare.split == "test" else []:
        success, table = document["metrics"].get("r_success"), document.get("transitions")
        if success and table and document["pairs"] == bare.n == assisted.n:
            apart = abs(success["a_mean"] - bare.success), abs(success["b_mean"] - assisted.success)
            if max(apart) < 1e-9:
                return Transitions(*(table[key] for key in TRANSITIONS))
    return None


def _gap(bare: CheckpointScore, assisted: CheckpointScore, table: Transitions | None) -> Gap:
    if table is not None:
        return Gap((table.gain - table.loss) / table.n, newcombe(table), table, table.n)
    value = assisted.success - bare.success
    (low_b, high_b), (low_a, high_a) = (
        wilson(round(s.success * s.n), s.n) for s in (bare, assisted)
    )
    down = math.hypot(assisted.success - low_a, high_b - bare.success)
    up = math.hypot(high_a - assisted.success, bare.success - low_b)
    return Gap(value, (value - down, value + up), None, 0)


def _key(score: CheckpointScore) -> tuple[int, str, str]:
    purpose = "test" if score.split == "test" else "baseline" if score.step == 0 else score.arm
    return score.round_id, purpose, score.arm
