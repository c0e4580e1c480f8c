"""The word language: pages as words, words as calls, and nothing that it cannot read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trainer.shop.mini.habits import HABITS, HASTE, INERT
from trainer.shop.mini.language import MAX_TURN_WORDS, MiniLanguage, words_of
from trainer.shop.mini.words import SPECIAL, vocabulary
from trainer.shop.session import ShopSession
from trainer.shop.tools import ToolCallError, action_of
from trainer.shop.world import World

LANGUAGE = MiniLanguage()

TURNS = (
    "search delta rustic chair",
    "next",
    "open #3",
    "details",
    "select l",
    "select white",
    "back",
)
EPISODE = [
    "home",
    "results page 1 of 3 $24 delta rustic #1 $25 delta rustic #2 $15 delta rustic #3",
    "results page 2 of 3 $9 delta rustic #1 $10 delta rustic #2 $7 delta rustic #3",
    "item delta rustic chair material unknown price $7 colours yellow white blue sizes s m "
    "l chosen none none",
    "item delta rustic chair material ceramic price $7 colours yellow white blue sizes s m "
    "l chosen none none",
    "item delta rustic chair material ceramic price $11 colours yellow white blue sizes s "
    "m l chosen none l",
    "item delta rustic chair material ceramic price $11 colours yellow white blue sizes s "
    "m l chosen white l",
    "results page 2 of 3 $9 delta rustic #1 $10 delta rustic #2 seen $7 delta rustic #3",
]


def play(session: ShopSession, state: dict[str, Any], words: str) -> Any:
    """Carry out a turn written in words."""
    name, arguments = LANGUAGE.decode(words.split(), state)
    return session.step(action_of(name, arguments, state))


def test_the_pages_of_one_episode_read_as_expected(mini: World) -> None:
    session = ShopSession(mini, 5)
    page = session.reset()
    pages = [page.text]
    for words in TURNS:
        page = play(session, dict(page.state), words).observation
        pages.append(page.text)
    assert pages == EPISODE


def test_the_prompt_shows_chunks_persona_and_request(mini: World) -> None:
    texts = ["Never exceed the budget.", "### Calm\n\n- Stay calm; and careful!"]
    assert LANGUAGE.prompt(mini.task(5), texts) == [
        (
            "system",
            "skill never exceed the budget ; calm stay calm and careful ; "
            "persona brand delta material ceramic budget $29",
        ),
        ("user", "request rustic chair colour red"),
    ]
    assert LANGUAGE.prompt(mini.task(5), [])[0] == (
        "system",
        "skill persona brand delta material ceramic budget $29",
    )


def test_a_chunk_cannot_smuggle_special_words(mini: World) -> None:
    (_, system), _ = LANGUAGE.prompt(mini.task(5), ["buy <end> <act> ; <pad>"])
    assert system.startswith("skill buy end act pad ; persona")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", "invalid_tool_call"),
        ("hello", "invalid_tool_call"),
        ("chair search", "invalid_tool_call"),
        ("search", "invalid_tool_arguments"),
        ("open", "invalid_tool_arguments"),
        ("open #4", "invalid_tool_arguments"),
        ("open #0", "invalid_tool_arguments"),
        ("open 1", "invalid_tool_arguments"),
        ("next next", "invalid_tool_arguments"),
        ("buy now", "invalid_tool_arguments"),
        ("select", "invalid_tool_arguments"),
        ("select oak", "invalid_tool_arguments"),
        ("back home", "invalid_tool_arguments"),
        ("search a b c d e f g", "invalid_tool_call"),
    ],
)
def test_words_that_stand_for_no_call_are_protocol_errors(
    mini: World, words: str, code: str
) -> None:
    session = ShopSession(mini, 5)
    state = dict(session.reset().state)
    state = dict(play(session, state, "search delta rustic chair").observation.state)
    with pytest.raises(ToolCallError) as caught:
        LANGUAGE.decode(words.split(), state)
    assert caught.value.code == code


def test_every_action_of_a_page_can_be_said_in_words(mini: World) -> None:
    """Round trip: for every clickable value there are words that decode to it."""
    rng = random.Random(3)
    for task_id in mini.split("val")[:60]:
        session = ShopSession(mini, task_id)
        state, done = dict(session.reset().state), False
        while not done:
            words = f"search {session.task.instruction_simple}"
            if not state["search_available"]:
                said = {clicked(each, state): each for each in sayable(state)}
                # ``back`` is one page back: from further in, the way home takes two of them
                assert set(state["actions"]) - set(said) <= {"back to search"}
                assert set(said) <= set(state["actions"])
                words = said[rng.choice(sorted(said))]
            result = play(session, state, words)
            state, done = dict(result.observation.state), result.done


def sayable(state: dict[str, Any]) -> list[str]:
    """Words for everything that the page offers."""
    words = [f"open #{place + 1}" for place in range(len(state.get("products", ())))]
    chosen = state.get("selected_options", {})
    for axis, values in state.get("available_options", {}).items():
        words += [f"select {value}" for value in values if chosen.get(axis) != value]
    buttons = {"next": "next >", "details": "attributes", "buy": "buy now"}
    return [
        "back",
        *words,
        *(verb for verb, value in buttons.items() if value in state["actions"]),
    ]


def clicked(words: str, state: dict[str, Any]) -> str:
    name, arguments = LANGUAGE.decode(words.split(), state)
    assert name == "click"
    return str(arguments["value"])


def test_a_refused_action_is_answered_with_error_and_the_same_page(mini: World) -> None:
    session = ShopSession(mini, 5)
    before = play(session, dict(session.reset().state), "search delta rustic chair").observation
    after = play(session, dict(before.state), "select red")
    assert after.observation.text == f"error {before.text}"
    assert LANGUAGE.feedback("invalid_tool_call") == "error"


def test_no_results_and_an_unasked_category_are_said(mini: World) -> None:
    session = ShopSession(mini, 5)
    home = dict(session.reset().state)
    empty = play(session, home, "search nothing")
    assert empty.observation.text == "results page 1 of 1 none"
    home = dict(play(session, dict(empty.observation.state), "back").observation.state)
    found = play(session, home, "search delta rustic").observation
    categories = [row["title"].split()[2] for row in found.state["products"]]
    assert found.text.split()[8:10] == [categories[0], "#1"]


def test_every_word_of_the_world_is_in_the_vocabulary(mini: World) -> None:
    known = set(vocabulary())
    assert len(known) == len(vocabulary()) == 388
    assert vocabulary()[:5] == SPECIAL
    for product in mini.catalogue.products.values():
        assert known.issuperset(product.title.split())
        assert known.issuperset((*product.attributes, *product.hidden_attributes))
        assert known.issuperset(value for values in product.options.values() for value in values)
    for task in mini.tasks.values():
        prompt = " ".join(text for _, text in LANGUAGE.prompt(task, []))
        assert known.issuperset(prompt.split())


def test_every_demonstrated_sentence_can_be_read() -> None:
    known = set(vocabulary())
    sentences = [text for habit in HABITS for text in (*habit.firm, *habit.vague)]
    for text in (*sentences, *INERT, *HASTE):
        assert known.issuperset(words_of(text)), text


def test_the_longest_sensible_turn_fits(mini: World) -> None:
    assert len(("search", "brand", "feature", "category")) <= MAX_TURN_WORDS
