from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from tests.trainer.gate.builders import pool_of
from trainer.errors import InputError
from trainer.gate.slots import Layout, build_layout
from trainer.gate.standard.confirm import confirmation_tasks, verdict_of
from trainer.gate.standard.decision import Roles, Thresholds, decide, holm_adjusted
from trainer.gate.standard.judge import select
from trainer.gate.standard.sequential import batches, fixed_states, spent_share
from trainer.gate.standard.settings import StandardSettings

SE = 0.02
DF = 400


def layout_of(
    current: str = "a", rewrites: dict[str, list[str]] | None = None, additions: int = 0
) -> Layout:
    return build_layout(pool_of(list(current), rewrites, [f"new {i}" for i in range(additions)]))


def decisions(
    layout: Layout, beta: list[float], se: float = SE, correlation: float = 0.0, **settings: Any
) -> list[str]:
    k = len(beta)
    covariance = se**2 * ((1 - correlation) * np.eye(k) + correlation)
    limits = Thresholds.of(StandardSettings(**settings), DF)
    found = decide(Roles.of(layout), np.array(beta), covariance, limits).named(layout)
    return list(found.values())


@pytest.mark.parametrize(
    ("effect", "decision"),
    [(0.10, "keep"), (0.04, "keep"), (0.02, "hold"), (0.003, "retire"), (-0.05, "retire")],
)
def test_a_current_chunk_is_kept_held_or_retired(effect: float, decision: str) -> None:
    assert decisions(layout_of(), [effect]) == [decision]


def test_without_precision_nothing_changes() -> None:
    assert decisions(layout_of(), [0.0], se=0.1) == ["hold"]
    assert decisions(layout_of(), [-0.05], se=0.1) == ["hold"]


def test_with_precision_a_small_useful_effect_stays_and_none_goes() -> None:
    assert decisions(layout_of(), [0.012], se=0.005) == ["keep"]
    assert decisions(layout_of(), [0.006], se=0.005) == ["hold"]  # benefit of the doubt
    assert decisions(layout_of(), [0.001], se=0.005) == ["retire"]


def test_an_effect_equivalent_to_zero_is_retired_even_when_it_is_certain() -> None:
    assert decisions(layout_of(), [0.004], se=0.001) == ["retire"]
    assert decisions(layout_of(), [0.004], se=0.001, equivalence_margin=0.001) == ["keep"]


def test_a_candidate_needs_its_own_evidence_and_holms() -> None:
    layout = layout_of(additions=1)
    critical = stats.t.ppf(0.95, DF) * SE
    assert decisions(layout, [0.1, critical + 1e-6])[1] == "adopt"
    assert decisions(layout, [0.1, critical - 1e-6])[1] == "reject"
    eight = layout_of(additions=8)
    assert decisions(eight, [0.1, critical + 1e-6] + [0.0] * 7)[1] == "reject"
    strong = stats.t.ppf(1 - 0.25 / 8, DF) * SE
    assert decisions(eight, [0.1, strong + 1e-6] + [0.0] * 7)[1] == "adopt"


def test_a_rewrite_must_beat_absence_and_the_old_text() -> None:
    layout = layout_of("a", {"a": ["new a"]})
    assert decisions(layout, [0.05, 0.12]) == ["keep", "adopt"]
    assert decisions(layout, [0.05, 0.06]) == ["keep", "reject"]
    assert decisions(layout, [-0.10, -0.01]) == ["retire", "reject"]  # better than old, no use
    assert decisions(layout, [-0.10, 0.06]) == ["retire", "adopt"]


def test_the_covariance_of_a_family_sharpens_the_comparison() -> None:
    layout = layout_of("a", {"a": ["new a"]})
    assert decisions(layout, [0.05, 0.09]) == ["keep", "reject"]
    assert decisions(layout, [0.05, 0.09], correlation=0.8) == ["keep", "adopt"]


def test_holm_equals_statsmodels() -> None:
    p = np.random.default_rng(0).uniform(size=9) ** 2
    assert holm_adjusted(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_useless_candidates_enter_at_most_in_one_gate_of_twenty() -> None:
    layout = layout_of(additions=6)
    rng = np.random.default_rng(2)
    limits = Thresholds.of(StandardSettings(), DF)
    roles, covariance = Roles.of(layout), SE**2 * np.eye(7)
    adopted = [
        decide(roles, SE * rng.normal(size=7), covariance, limits).codes[1:] == 0
        for _ in range(2000)
    ]
    assert np.mean(adopted) <= 0.05
    assert np.mean([row.any() for row in adopted]) <= 0.25


def chosen(layout: Layout, beta: list[float], given: list[str], budget: int = 10) -> dict[str, str]:
    named = dict(zip(layout.columns, beta, strict=True))
    made = select(layout, named, named, dict(zip(layout.columns, given, strict=True)), budget)  # type: ignore[arg-type]
    return {name: verdict.status for name, verdict in made.verdicts.items()}


def test_decisions_become_statuses() -> None:
    layout = layout_of("abcd", {"a": ["new a", "newer a"]}, 2)
    given = ["keep", "adopt", "adopt", "keep", "hold", "retire", "adopt", "reject"]
    statuses = chosen(layout, [0.1, 0.3, 0.2, 0.1, 0.01, -0.1, 0.2, 0.0], given)
    assert list(statuses.values()) == [
        "rewrite_loser",
        "selected",
        "rewrite_loser",
        "selected",
        "held",
        "retired",
        "selected",
        "not_adopted",
    ]


def test_the_budget_drops_held_chunks_first() -> None:
    layout = layout_of("abc", None, 1)
    statuses = chosen(layout, [0.01, 0.2, 0.02, 0.05], ["keep", "hold", "hold", "adopt"], budget=3)
    assert list(statuses.values()) == ["selected", "held", "budget_excluded", "selected"]


def test_levels_are_spent_once() -> None:
    for looks in (1, 2, 3, 5):
        shares = [spent_share(look, looks) for look in range(1, looks + 1)]
        assert sum(shares) == pytest.approx(1.0)
        assert shares == sorted(shares)
    assert spent_share(1, 2) == pytest.approx(0.1114, abs=1e-3)  # 0.00557 of 0.05


def test_batches_part_the_tasks_evenly_and_keep_their_order() -> None:
    parts = batches(range(100), 3, "x")
    assert sorted(task for part in parts for task in part) == list(range(100))
    assert {len(part) for part in parts} == {33, 34}
    assert all(list(part) == sorted(part) for part in parts)
    assert batches(range(100), 3, "y") != parts


def test_decided_slots_stay_in_their_state() -> None:
    layout = layout_of("ab", {"a": ["new a"]}, 1)
    names = layout.columns
    decided: dict[str, Any] = {names[0]: "keep", names[1]: "adopt", names[3]: "reject"}
    assert fixed_states(layout, decided) == {"a": names[1], names[3]: None}


def test_confirmation_halves_alternate_by_round() -> None:
    first = confirmation_tasks(range(100), 50, round_id="round-000", label="1")
    second = confirmation_tasks(range(100), 50, round_id="round-001", label="1")
    assert set(first) | set(second) == set(range(100))
    assert confirmation_tasks(range(100), 50, round_id="round-002", label="1") == first
    assert confirmation_tasks(range(100), 0, round_id="round-000", label="1") == ()
    with pytest.raises(InputError, match="at most half"):
        confirmation_tasks(range(100), 51, round_id="round-000", label="1")


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [([0.01, 0.1], "confirmed"), ([-0.1, 0.1], "unclear"), ([-0.1, -0.01], "refuted")],
)
def test_the_interval_of_new_minus_old_is_the_verdict(interval: list[float], verdict: str) -> None:
    assert verdict_of({"ci95": interval}) == verdict
