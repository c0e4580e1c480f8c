"""No agent text and no order of actions breaks the shop."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.shop.action_text import read_action
from trainer.shop.navigation import ATTRIBUTES, BACK_TO_SEARCH, BUY, NEXT, PREVIOUS
from trainer.shop.profiles import COMPAT, PROFILES, STANDARD, ShopProfile
from trainer.shop.records import load_records
from trainer.shop.session import ShopSession
from trainer.shop.synthetic import SyntheticSettings, generate_records
from trainer.shop.tools import ToolCallError, action_of, tools_for
from trainer.shop.types import Action, StepResult
from trainer.shop.world import World


def noisy_world(profile: ShopProfile) -> World:
    records = list(generate_records(SyntheticSettings(products=200, seed=9, noise=0.08)))
    data = load_records(records, profile, sha256="noisy", source="test")
    return World(profile, data.catalogue, data.tasks, {"all": tuple(data.tasks)})


WORLDS = {profile.name: noisy_world(profile) for profile in (COMPAT, STANDARD)}

BUTTONS = st.sampled_from([BACK_TO_SEARCH, NEXT, PREVIOUS, BUY, ATTRIBUTES, "search", "Buy Now"])
TEXTS = st.text(max_size=40) | st.sampled_from(
    ["search[]", "click[", "<r>", "<a> x", "search[<c>]", "a\\nb", "Action: x", "\ud800", "\x00"]
)
#: a click by place on the page, a fixed word, or free text as search, click or raw wire text
STEPS = st.lists(
    st.tuples(st.just("place"), st.integers(0, 60))
    | st.tuples(st.just("button"), BUTTONS)
    | st.tuples(st.sampled_from(["search", "click", "wire"]), TEXTS)
    | st.tuples(st.just("search"), st.sampled_from(["冰箱", "kettle usb-c", "宿舍 台灯 a5"])),
    max_size=45,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(WORLDS)), st.integers(0, 10_000), STEPS)
def test_any_sequence_ends_or_goes_on_without_an_exception(
    name: str, draw: int, steps: list[tuple[str, object]]
) -> None:
    world = WORLDS[name]
    tasks = world.split("all")
    session = ShopSession(world, tasks[draw % len(tasks)])
    state = session.reset().state
    for number, (kind, value) in enumerate(steps, 1):
        result = take(session, state["actions"], kind, value)
        state = result.observation.state
        assert session.actions_taken == number
        assert result.observation.text == world.render(state)
        assert result.feedback is not None
        if result.done:
            assert result.reward == result.reward_detail["r_strict"]
            assert 0 <= result.reward <= 1
            assert result.goal["task_id"] == session.task.task_id
            break
        assert number < session.max_actions
        assert tools_for(state)
        assert (result.reward, result.reward_detail, result.purchase, result.goal) == (
            0,
            {},
            {},
            {},
        )


def take(session: ShopSession, actions: list[str], kind: str, value: object) -> StepResult:
    if kind == "place":
        return session.step(
            Action("click", actions[int(str(value)) % len(actions)] if actions else "-")
        )
    if kind == "wire":
        read = read_action(value)
        if isinstance(read, Action):
            return session.step(read)
        return session.reject(str(value), read)
    return session.step(Action("search" if kind == "search" else "click", str(value)))


@given(
    st.text(max_size=10) | st.sampled_from(["search", "click"]),
    st.dictionaries(
        st.sampled_from(["query", "value", "x"]), st.text() | st.integers() | st.none()
    ),
)
def test_any_call_is_an_action_or_a_protocol_error(name: str, arguments: dict[str, object]) -> None:
    session = ShopSession(WORLDS["standard"], WORLDS["standard"].split("all")[0])
    state = session.reset().state
    try:
        action = action_of(name, arguments, state)
    except ToolCallError as error:
        assert error.code in ("unavailable_tool", "invalid_tool_arguments")
    else:
        assert action.argument.strip()


def test_every_profile_names_all_its_identifiers() -> None:
    for profile in PROFILES.values():
        assert all(profile.identity().values()), profile.name
