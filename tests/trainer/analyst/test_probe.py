"""The usefulness probe: paired episodes with and without a text, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.trainer.analyst.shoppers import lost
from tests.trainer.fakes import FakePolicy, words
from trainer.analyst.probe import Effect, Prober, screen
from trainer.analyst.rules.goal import Goal, goal_of
from trainer.analyst.rules.shopper import Shopper
from trainer.analyst.settings import ProbeSettings
from trainer.rollout.policy import Conversation, ModelTurn
from trainer.shop.session import ShopSession
from trainer.shop.world import World
from trainer.skills.types import Chunk

HELPS = "Select the wanted colour before you buy."
HARMS = "Buy right away."
IDLE = "Keep calm."
SETTINGS = ProbeSettings(
    enabled=True, rollouts_per_task=1, source_tasks=4, unrelated_tasks=6, greatest_harm=0.05
)


@pytest.fixture
def sources(mini: World) -> list[int]:
    return [trace["job"]["task_id"] for trace in lost(mini, ["select_option:colour"], 4)]


class Shopping:
    """A policy that selects colours only when it is told to, and is careless when told to be
    quick. It plays along in a session of its own to know the pages."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sessions: dict[str, Any] = {}

    def answer(self, conversation: Conversation, turn: int) -> ModelTurn:
        told = conversation.messages[0].content
        key = f"{conversation.noise_key}|{told}"
        task_id = int(conversation.noise_key.split(":")[2])
        if turn == 0:
            session = ShopSession(self._world, task_id)
            self._sessions[key] = [session, session.reset()]
        session, page = self._sessions[key]
        goal: Goal = goal_of(self._world.task(task_id), self._world.catalogue)
        faults = set() if "select the wanted colour" in told else {"select_option:colour"}
        if "buy right away" in told:
            faults |= {"select_option:size", "within_budget", "leave_missing_option"}
        action = Shopper(goal, frozenset(faults)).act(page.state, session.max_actions - turn)
        text = _said(action.name, action.argument, page.state)
        self._sessions[key][1] = session.step(action).observation
        return words(text)


def _said(name: str, argument: str, state: Any) -> str:
    if name == "search":
        return f"search {argument}"
    buttons = {"next >": "next", "< prev": "back", "attributes": "details", "buy now": "buy"}
    if argument in buttons:
        return buttons[argument]
    if "=" in argument:
        return f"select {argument.split('=')[1]}"
    places = {row["asin"]: place for place, row in enumerate(state["products"], 1)}
    return f"open #{places[argument]}"


def prober(world: World, chunks: Sequence[Chunk] = (), **changes: Any) -> Prober:
    policy = FakePolicy(Shopping(world).answer)
    settings = SETTINGS.model_copy(update=changes)
    return Prober(world, policy, chunks, settings, seed=5)


def add(text: str, **changes: Any) -> dict[str, Any]:
    return {"operation": "ADD", "target_chunk_id": None, "title": text, **changes}


def test_a_text_that_helps_gains_on_the_tasks_that_led_to_it(
    mini: World, sources: list[int]
) -> None:
    probe = prober(mini)
    gain = probe.on_sources(add(HELPS), HELPS, sources)
    assert gain.episodes == 4 and gain.change >= 0.2
    idle = probe.on_sources(add(IDLE), IDLE, sources)
    assert (idle.change, idle.se) == (0.0, 0.0), "the same random numbers, the same episodes"


def test_unrelated_tasks_are_others_and_the_same_for_every_text(
    mini: World, sources: list[int]
) -> None:
    probe = prober(mini)
    harm = probe.on_others(add(HARMS), HARMS, sources)
    assert harm.episodes == 6 and harm.change < -0.05
    helped = probe.on_others(add(HELPS), HELPS, sources)
    assert helped.change >= 0.0


def test_the_context_decides_what_stands_around_a_text(mini: World, sources: list[int]) -> None:
    bank = [Chunk("c", HELPS), Chunk("d", IDLE)]
    alone = prober(mini, bank).on_sources(add(HELPS), HELPS, sources)
    full = prober(mini, bank, context="full").on_sources(add(HELPS), HELPS, sources)
    assert alone.change >= 0.2 and full.change == 0.0, "the bank says it already"


def test_a_rewrite_is_compared_with_its_target(mini: World, sources: list[int]) -> None:
    bank = [Chunk("c", HELPS)]
    rewrite = {"operation": "REWRITE", "target_chunk_id": "c", "title": "r"}
    assert prober(mini, bank).on_sources(rewrite, IDLE, sources).change <= -0.2


def test_the_screen_refuses_what_harms_and_keeps_its_measurement(
    mini: World, sources: list[int]
) -> None:
    items = [add(HELPS, evidence_card_ids=["a", "b"]), add(HARMS, evidence_card_ids=["c"])]
    tasks = {"a": sources[0], "b": sources[1], "c": sources[2]}
    screened = screen(prober(mini, unrelated_tasks=40), items, [HELPS, HARMS], tasks)
    assert [item["title"] for item in screened.items] == [HELPS]
    assert screened.items[0]["probe"]["on_sources"]["change"] > 0
    assert screened.rejected_cards == ("c",)
    assert screened.notes[0].startswith(f"{HARMS}: probe")


def test_an_effect_is_a_mean_with_its_error() -> None:
    effect = Effect.of([1.0, 0.0, 0.0, 1.0])
    assert (effect.change, effect.se, effect.episodes) == (0.5, 0.25, 4)
    assert Effect.of([]).episodes == 0
