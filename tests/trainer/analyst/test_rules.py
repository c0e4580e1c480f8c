"""The rule-based analyst: it names the fault that was planted, and says so in readable words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.analyst.played import click, first_product, played
from tests.trainer.analyst.shoppers import lost
from trainer.analyst.cards import CardContext, card_row, input_fingerprint
from trainer.analyst.firewall import Firewall, gold_facts
from trainer.analyst.rules.analyst import RuleBasedAnalyst
from trainer.analyst.rules.mechanisms import mechanism_of, mechanisms_of
from trainer.analyst.rules.reading import is_vague
from trainer.analyst.words import words_of
from trainer.errors import InputError
from trainer.shop.types import Action
from trainer.shop.world import World, load_world
from trainer.skills.types import Chunk

AXES = ("colour", "size")
FAULTS = (
    "brand_in_query",
    "turn_page",
    "reveal_hidden",
    "leave_missing_option",
    "within_budget",
    "select_option:colour",
    "select_option:size",
)
VAGUE = Chunk("chunk-vague", "Respect what the user can afford.")
CLEAR = Chunk("chunk-clear", "Go back when the price is over the budget.")


def analyst(world: World, *chunks: Chunk) -> RuleBasedAnalyst:
    return RuleBasedAnalyst(world, chunks, most_trials=24)


def named(world: World, trace: dict[str, Any], *chunks: Chunk) -> tuple[str, str]:
    """(status, name of the mechanism) of a trace's card."""
    submission, _ = analyst(world, *chunks).analyse(trace)
    failure = submission.deployable["failure_mechanism"]
    known = {m.failure: m.name for m in mechanisms_of(AXES)}
    return submission.status, known.get(failure, "unexplained")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_single_planted_fault_is_named_from_its_failures(mini: World, fault: str) -> None:
    verdicts = Counter(named(mini, trace) for trace in lost(mini, [fault], 12))
    assert verdicts[("PROPOSE_ADD", fault)] >= 11, verdicts


def test_a_repair_is_seen_to_work_in_a_fresh_session(mini: World) -> None:
    (trace,) = lost(mini, ["select_option:colour"], 1)
    submission, work = analyst(mini).analyse(trace)
    assert work.successes == 1 and work.valid_actions >= 3
    winner = work.trials[-1]
    assert winner["reward_detail"]["r_success"] == 1
    assert winner["repaired"] == ["select_option:colour"]
    turn = int(re.search(r"turn (\d+)", submission.privileged["earliest_divergence"])[1])  # type: ignore[index]
    replayed = [step["action"] for step in trace["steps"][: turn - 1]]
    bare = [re.sub(r"\d{10,}", "[redacted]", action) for action in replayed]
    assert winner["actions"][: turn - 1] == bare, "the trace is replayed up to the divergence"


def test_two_faults_that_are_both_needed_are_repaired_together(mini: World) -> None:
    faults = ["select_option:colour", "select_option:size"]
    traces = [
        trace
        for trace in lost(mini, faults, 60)
        if trace["final"]["reward_detail"]["num_option_matches"] == 0
        and len(mini.task(trace["job"]["task_id"]).goal_options) == 2
    ]
    assert len(traces) >= 5
    for trace in traces:
        _, work = analyst(mini).analyse(trace)
        winning = [trial["repaired"] for trial in work.trials if trial["reward"] == 1.0]
        assert winning == [faults]


def test_a_vague_chunk_that_was_shown_and_did_not_help_is_rewritten(mini: World) -> None:
    (trace,) = lost(mini, ["within_budget"], 1, [VAGUE])
    submission, _ = analyst(mini, VAGUE).analyse(trace)
    assert submission.status == "PROPOSE_REWRITE"
    assert submission.deployable["target_chunk_id"] == VAGUE.skill_id


def test_a_chunk_that_was_not_shown_or_is_clear_already_calls_for_nothing(mini: World) -> None:
    (unshown,) = lost(mini, ["within_budget"], 1)
    assert named(mini, unshown, VAGUE) == ("NO_PROPOSAL", "within_budget")
    (unheeded,) = lost(mini, ["within_budget"], 1, [CLEAR])
    assert named(mini, unheeded, CLEAR) == ("NO_PROPOSAL", "within_budget")


def test_an_episode_that_bought_nothing_is_examined_too(mini: World) -> None:
    task_id = mini.split("train")[0]
    trace = played(mini, task_id, [Action("search", "boots"), click("next >"), first_product])
    submission, work = analyst(mini).analyse(trace)
    assert submission.privileged["failure_surface"].startswith("ended by action_limit")
    assert work.trials


def test_turns_lost_to_protocol_errors_are_lost_in_the_trial_too(mini: World) -> None:
    (trace,) = lost(mini, ["select_option:colour"], 1)
    lost_turn = {**trace["steps"][0], "action": None, "environment": None}
    trace = {**trace, "steps": [lost_turn] * 9 + trace["steps"]}
    _, work = analyst(mini).analyse(trace)
    assert all(len(trial["actions"]) <= mini.profile.max_actions - 9 for trial in work.trials)
    assert work.successes == 0


def test_the_same_trace_gives_the_same_card(mini: World) -> None:
    (trace,) = lost(mini, ["reveal_hidden"], 1)
    rows = []
    for _ in range(2):
        submission, work = analyst(mini).analyse(trace)
        context = CardContext("online", [], Firewall("standard", mini.catalogue), "rule_based")
        mark = input_fingerprint(
            trace, bank_sha256="b", analyst=analyst(mini).identity(), turns=20, wall="w"
        )
        row = card_row(
            trace,
            submission,
            work,
            context,
            facts=gold_facts(trace, mini.catalogue),
            input_fingerprint=mark,
            trigger="all_wrong",
        )
        row.pop("created_at")
        rows.append(row)
    assert rows[0] == rows[1]
    assert rows[0]["provenance"] == "rule_based" and rows[0]["eligible_for_consolidation"]
    assert rows[0]["firewall_findings"] == []


def test_every_sentence_is_made_of_words_that_the_policy_reads(mini: World) -> None:
    assert mini.language is not None
    vocabulary = set(mini.language.vocabulary())
    wall = Firewall("standard", mini.catalogue)
    for mechanism in mechanisms_of(AXES):
        for sentence in mechanism.sentences("material"):
            assert set(words_of(sentence)) <= vocabulary, sentence
            assert len(words_of(sentence)) <= 20
            assert wall.candidate(sentence, []) == []


def test_every_sentence_is_recognised_as_being_about_its_mechanism() -> None:
    known = mechanisms_of(AXES)
    for mechanism in known:
        for sentence in mechanism.sentences("material"):
            assert mechanism_of(sentence, known, "material") == mechanism, sentence
            assert not is_vague(sentence)
    assert mechanism_of("Stay calm and careful.", known, "material") is None
    budget = mechanism_of("Mind the budget.", known, "material")
    assert budget is not None and budget.name == "within_budget"
    assert is_vague(VAGUE.content)


def test_worlds_of_whole_texts_are_refused() -> None:
    with pytest.raises(InputError, match="worlds of single words"):
        analyst(load_world("standard"))


def test_the_analyst_knows_nothing_of_habits_and_demonstrations() -> None:
    root = Path(__file__).parents[3] / "trainer" / "analyst"
    for path in root.rglob("*.py"):
        assert not re.search(r"habits|demonstrat", path.read_text()), path
