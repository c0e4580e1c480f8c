"""Replaying finished traces."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.shop.factories import product, task, world
from trainer.cli.main import main
from trainer.errors import InputError
from trainer.shop.profiles import COMPAT, STANDARD
from trainer.shop.replay import replay
from trainer.shop.session import ShopSession
from trainer.shop.trace_files import read_traces
from trainer.shop.types import Action, StepResult
from trainer.shop.world import World, load_world

TARGET = "932040992888"


@pytest.fixture
def shop() -> World:
    return world([product(), product("000000000001")], task(), profile=STANDARD)


def reply(result: StepResult) -> dict[str, Any]:
    return {
        "done": result.done,
        "reward": result.reward,
        "observation_state": result.observation.state,
        "action_feedback": result.feedback,
    }


def record(shop: World, *clicks: str, max_steps: int = 30, end: str = "") -> dict[str, Any]:
    """A trace of a search and ``clicks``, as JSON would bring it back."""
    session = ShopSession(shop, min(shop.tasks), max_actions=max_steps)
    page = session.reset()
    trace: dict[str, Any] = {
        "episode_id": "task-000000__sample-000",
        "job": {"task_id": min(shop.tasks)},
        "provenance": {"environment": shop.identity(), "runtime": {"max_steps": max_steps}},
        "reset": {"observation_state": page.state},
        "steps": [{"step_index": 1, "action": None, "environment": None}],
        "final": None,
    }
    actions = [Action("search", "洗衣机"), *(Action("click", click) for click in clicks)]
    for number, action in enumerate(actions, 2):
        result = session.step(action)
        trace["steps"].append(
            {"step_index": number, "action": str(action), "environment": reply(result)}
        )
    if end:
        result = session.terminate(end)  # type: ignore[arg-type]
    if result.done:
        trace["final"] = {
            **reply(result),
            "observation": result.observation.text,
            "reward_detail": result.reward_detail,
            "purchase": result.purchase,
            "goal": result.goal,
            "termination_reason": result.termination_reason,
        }
    copied: dict[str, Any] = json.loads(json.dumps(trace))
    return copied


BUY = (TARGET, "颜色分类=白色", "尺码=大号", "buy now")


@pytest.mark.parametrize(
    ("clicks", "end"),
    [
        (BUY, ""),
        ((TARGET, "nonsense", "尺码=大号"), "action_limit"),
        ((TARGET,), "context_limit"),
        ((), ""),
    ],
)
def test_an_untouched_trace_replays_without_a_difference(
    shop: World, clicks: tuple[str, ...], end: str
) -> None:
    trace = record(shop, *clicks, end=end)
    assert trace["final"] is not None or not end
    assert replay(shop, trace) is None


def test_an_episode_that_ran_into_its_limit_replays(shop: World) -> None:
    trace = record(shop, "x", "y", max_steps=3)
    assert trace["final"]["termination_reason"] == "action_limit"
    assert replay(shop, trace) is None


@pytest.mark.parametrize(
    ("path", "value", "step", "field"),
    [
        (("steps", 2, "environment", "reward"), 0.5, 3, "environment.reward"),
        (
            ("steps", 2, "environment", "observation_state", "selected_options"),
            {"颜色分类": "黑色"},
            3,
            "environment.observation_state.selected_options.颜色分类",
        ),
        (("steps", 2, "action"), "click[000000000001]", 3, "environment.observation_state.actions"),
        (("final", "reward_detail", "r_att"), 0.25, None, "final.reward_detail.r_att"),
        (("final", "observation"), "x", None, "final.observation"),
        (("reset", "observation_state", "page_type"), "terminal", 0, "reset.observation_state"),
    ],
)
def test_the_first_difference_is_named(
    shop: World, path: tuple[Any, ...], value: Any, step: int | None, field: str
) -> None:
    trace = record(shop, *BUY)
    place: Any = copy.copy(trace)
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    found = replay(shop, trace)
    assert found is not None
    assert found.step == step
    assert found.field.startswith(field) or "last_action" in found.field


def test_steps_after_the_end_are_a_difference(shop: World) -> None:
    trace = record(shop, *BUY)
    trace["steps"].append({"step_index": 9, "action": "click[x]", "environment": None})
    found = replay(shop, trace)
    assert found is not None
    assert (found.step, found.field) == (9, "done")


def test_a_trace_of_another_environment_is_refused(shop: World) -> None:
    other = world([product()], task(), profile=STANDARD)
    with pytest.raises(InputError, match="another catalogue_sha256"):
        replay(other, record(shop, *BUY))
    with pytest.raises(InputError, match="another profile"):
        replay(world([product()], task(), profile=COMPAT), record(shop, *BUY))


def test_published_traces_are_compared_by_structure_only() -> None:
    shop = world([product()], task(), profile=COMPAT)
    trace = record(shop, *BUY)
    environment = trace["provenance"]["environment"]
    trace["provenance"]["environment"] = {
        "adapter": "shopsimulator_http",
        "environment_version": environment["environment_version"],
        "observation_version": environment["observation_version"],
    }
    step = trace["steps"][2]["environment"]
    step["action_feedback"]["message"] = "another wording"
    step["observation_state"]["last_action"]["message"] = "another wording"
    trace["final"]["observation"] = "another wording"
    assert replay(shop, trace) is None
    step["action_feedback"]["reason"] = "unavailable_action"
    found = replay(shop, trace)
    assert found is not None
    assert found.field == "environment.action_feedback.reason"


# --- command


def bundled(*clicks: str) -> dict[str, Any]:
    return record(load_world("standard"), *clicks)


def write(path: Path, *traces: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    return path


def test_the_command_says_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "traces.jsonl", bundled("back to search"), bundled())
    assert main(["shop", "replay", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "episodes": 2,
        "steps": 5,
        "first_difference": None,
    }


def test_the_command_names_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = bundled("back to search")
    broken["steps"][1]["environment"]["reward"] = 1
    path = write(tmp_path / "traces.jsonl", bundled(), broken)
    assert main(["shop", "replay", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["first_difference"] == {
        "episode_id": "task-000000__sample-000",
        "step": 2,
        "field": "environment.reward",
        "recorded": 1,
        "replayed": 0.0,
    }


def test_an_unknown_episode_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "traces.jsonl", bundled())
    assert main(["shop", "replay", str(path), "--episode", "nope"]) == 2
    assert "no such episode" in capsys.readouterr().err


def test_a_missing_file_and_a_single_document(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_traces(tmp_path / "none.jsonl"))
    path = tmp_path / "one.json"
    path.write_text(json.dumps(bundled(), indent=2))
    assert len(list(read_traces(path))) == 1
