from __future__ import annotations

from tests.trainer.gate.builders import pool_of
from trainer.gate.ledger import append_proposals, attach_results
from trainer.gate.selection import next_chunks, select
from trainer.gate.slots import Layout, build_layout


def ids(layout: Layout, operation: str) -> list[str]:
    return [k for k, item in layout.interventions.items() if item.operation == operation]


def test_planted_effects_get_the_published_statuses() -> None:
    layout = build_layout(pool_of(["a"], {"a": ["better a"]}, ["helpful", "harmful"]))
    (rewrite,) = ids(layout, "REWRITE")
    first, second = ids(layout, "ADD")
    effects = {"a": 0.2, rewrite: 0.6, first: 0.3, second: -0.2}
    chosen = select(layout, effects, 10)
    assert {name: verdict.status for name, verdict in chosen.verdicts.items()} == {
        "a": "rewrite_loser",
        rewrite: "selected",
        first: "selected",
        second: "non_positive",
    }
    assert [chosen.verdicts[n].rank for n in ("a", rewrite, first, second)] == [None, 1, 2, 3]
    assert chosen.winners == {"a": rewrite, first: first, second: second}


def test_a_winning_rewrite_keeps_the_old_id() -> None:
    pool = pool_of(["a"], {"a": ["better a"]})
    layout = build_layout(pool)
    (rewrite,) = ids(layout, "REWRITE")
    (chunk,) = next_chunks(layout, select(layout, {"a": 0.1, rewrite: 0.2}, 10))
    assert (chunk.skill_id, chunk.content, chunk.version) == ("a", "better a", "candidate")
    assert chunk.metadata["selected_intervention_id"] == rewrite
    assert chunk.metadata["estimated_effect"] == 0.2
    assert chunk.metadata["contribution_rank"] == 1


def test_the_old_version_wins_a_tie() -> None:
    layout = build_layout(pool_of(["a"], {"a": ["x", "y"]}))
    first, second = layout.slots[0].versions[1:]
    assert select(layout, {"a": 0.1, first: 0.1, second: 0.1}, 10).winners == {"a": "a"}
    assert select(layout, {"a": 0.0, first: 0.1, second: 0.1}, 10).winners == {"a": first}


def test_zero_is_not_positive_and_ties_rank_by_id() -> None:
    layout = build_layout(pool_of(["b", "a", "c"]))
    chosen = select(layout, {"a": 0.1, "b": 0.1, "c": 0.0}, 10)
    assert [chosen.verdicts[name].rank for name in ("a", "b", "c")] == [1, 2, 3]
    assert chosen.selected == ("b", "a")  # the order of the bank, not of the contribution
    assert chosen.verdicts["c"].status == "retired"


def test_the_budget_retires_current_chunks_and_excludes_candidates() -> None:
    layout = build_layout(pool_of(["a", "b"], None, ["extra"]))
    (extra,) = ids(layout, "ADD")
    chosen = select(layout, {"a": 0.3, "b": 0.2, extra: 0.1}, 1)
    assert {name: v.status for name, v in chosen.verdicts.items()} == {
        "a": "selected",
        "b": "retired",
        extra: "budget_excluded",
    }


def test_the_bank_is_never_padded() -> None:
    layout = build_layout(pool_of(["a", "b"]))
    assert select(layout, {"a": -0.1, "b": -0.2}, 10).selected == ()


def test_the_ledger_keeps_its_order_and_marks_an_earlier_proposal_retired() -> None:
    common = {
        "evaluation_checkpoint": "c",
        "estimator": "e",
        "bare_observations_sha256": "b",
    }
    first = pool_of(["a"], None, ["extra"])
    layout = build_layout(first)
    (extra,) = ids(layout, "ADD")
    rows = attach_results(
        append_proposals([], first),
        first,
        select(layout, {"a": 0.1, extra: 0.2}, 10),
        assignment_sha256="one",
        **common,
    )
    assert rows[0]["validation_result"] == "selected"
    second = pool_of(["a", extra], None, ["another"])
    layout = build_layout(second)
    another = next(n for n in ids(layout, "ADD") if n != extra)
    chosen = select(layout, {"a": 0.1, extra: -0.2, another: 0.1}, 10)
    history = append_proposals(rows, second)
    for _ in range(2):  # a gate that is run again replaces its own event
        history = attach_results(history, second, chosen, assignment_sha256="two", **common)
    assert [row["candidate_id"] for row in history] == [extra, another]
    assert history[0]["validation_result"] == "retired"
    assert history[0]["active_chunk_id"] == extra
    results = [event["validation_result"] for event in history[0]["validation_history"]]
    assert results == ["selected", "retired"]
