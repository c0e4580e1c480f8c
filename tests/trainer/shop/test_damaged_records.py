"""Whatever stands in a record: it loads and can be played, or one error names its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainer.errors import InputError
from trainer.shop.data.audit import audit
from trainer.shop.data.build_splits import persona_tasks
from trainer.shop.data.cleaning import Cleaner
from trainer.shop.profiles import COMPAT, STANDARD, ShopProfile
from trainer.shop.records import load_records
from trainer.shop.session import ShopSession
from trainer.shop.synthetic import SyntheticSettings, generate_records
from trainer.shop.types import Action
from trainer.shop.world import World

RECORDS = list(generate_records(SyntheticSettings(products=6, seed=5, noise=0.1)))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 10**400, 1e308, 0.5])
    | st.text(max_size=12)
    | st.sampled_from(["", " ", "nan", "/", "a=b", "\n", "预算" + "九" * 40 + "元", "buy now"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document, its root left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


PLACES = [place for place in paths(RECORDS[:3]) if len(place) > 1]  # archives hold objects


def put(records: Any, path: tuple[Any, ...], value: Any, *, remove: bool) -> None:
    for key in path[:-1]:
        records = records[key]
    if remove:
        del records[path[-1]]
    else:
        records[path[-1]] = value


def loaded(records: list[Any], profile: ShopProfile) -> World | None:
    try:
        data = load_records(records, profile, sha256="x", source="test")
    except InputError as error:
        assert error.field is not None
        assert error.field.startswith("[")
        assert error.remedy
        assert len(str(error)) < 600
        return None
    return World(profile, data.catalogue, data.tasks, {"all": tuple(data.tasks)})


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(PLACES), JSON, st.booleans(), st.sampled_from([COMPAT, STANDARD]))
def test_a_changed_record_loads_and_plays_or_is_named(
    place: tuple[Any, ...], value: Any, remove: bool, profile: ShopProfile
) -> None:
    records = copy.deepcopy(RECORDS)
    put(records, place, value, remove=remove)
    world = loaded(records, profile)
    if world is None:
        return
    audit(world, world.tasks)
    for task_id in world.tasks:
        session = ShopSession(world, task_id)
        session.reset()
        page = session.step(Action("search", session.task.name)).observation
        for _ in range(8):
            if session.done or not page.state["actions"]:
                break
            result = session.step(Action("click", page.state["actions"][-1]))
            page = result.observation
            json.dumps([page.state, result.goal, result.reward_detail], allow_nan=False)
            page.text.encode()
        if not session.done:
            result = session.terminate("action_limit")
            json.dumps(result.goal, allow_nan=False)


@settings(max_examples=150, deadline=None)
@example((2, "instructions", 0, "attributes"), None, True)  # a persona task without the key
@example((2, "customization_options", "颜色分类", 0, "price"), 10**400, False)  # no float holds it
@example((2, "pricing", 0), 10**400, False)
@given(st.sampled_from(PLACES), JSON, st.booleans())
def test_a_changed_record_is_cleaned_or_named(
    place: tuple[Any, ...], value: Any, remove: bool
) -> None:
    records = copy.deepcopy(RECORDS)
    put(records, place, value, remove=remove)
    cleaner = Cleaner()
    try:
        cleaned = list(cleaner.clean(records))
    except InputError as error:
        assert error.field is not None
        assert error.field.startswith("[")
        return
    assert len(cleaned) + len(cleaner.exclusions) == len(records)
    list(persona_tasks(cleaned))
