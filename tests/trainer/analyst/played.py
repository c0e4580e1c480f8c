"""Episodes played by hand on a shop's own machine, as the traces that the analyst reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainer.rollout.records import final_record
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, StepResult
from trainer.shop.world import World
from trainer.skills.types import Chunk

Choose = Callable[[Mapping[str, Any]], Action]


def click(value: str) -> Action:
    return Action("click", value)


def played(
    world: World,
    task_id: int,
    choices: Sequence[Action | Choose],
    *,
    chunks: Sequence[Chunk] = (),
    episode_id: str | None = None,
    full_skill: bool = True,
) -> dict[str, Any]:
    """The trace of an episode that takes ``choices`` in order and then ends at the action limit."""
    session = ShopSession(world, task_id)
    page = session.reset()
    first = page.state
    steps: list[dict[str, Any]] = []
    result: StepResult | None = None
    for choice in choices:
        action = choice if isinstance(choice, Action) else choice(page.state)
        result = session.step(action)
        steps.append(
            {
                "step_index": len(steps) + 1,
                "observation": page.text,
                "model": {"content": str(action), "reasoning": "", "tool_calls": []},
                "action": str(action),
                "environment": {
                    "done": result.done,
                    "reward": result.reward,
                    "observation_state": result.observation.state,
                    "action_feedback": result.feedback,
                },
            }
        )
        page = result.observation
        if result.done:
            break
    if result is None or not result.done:
        result = session.terminate("action_limit")
    task = world.task(task_id)
    return {
        "schema_version": "shopsimrl-episode-v4",
        "episode_id": episode_id or f"played-{task_id}",
        "status": "completed",
        "job": {"task_id": task_id, "sample_id": 0, "seed": 1, "split": "train"},
        "provenance": {"skills": {"diagnostic_full_skill": full_skill}},
        "reset": {
            "task_instruction": task.instruction_simple,
            "user_persona": dict(task.persona),
            "observation_state": first,
        },
        "selected_skills": [chunk.to_record() for chunk in chunks],
        "conversation": [],
        "steps": steps,
        "final": final_record(result),
        "error": None,
    }


def first_product(state: Mapping[str, Any]) -> Action:
    return click(state["products"][0]["asin"])


def browse_and_buy(world: World, task_id: int) -> dict[str, Any]:
    """Search the request, open what comes first, take the first option of each axis, buy."""
    task = world.task(task_id)
    session = ShopSession(world, task_id)
    session.reset()
    page = session.step(Action("search", task.instruction_simple)).observation
    if not page.state["products"]:
        return played(world, task_id, [Action("search", task.instruction_simple)])
    page = session.step(first_product(page.state)).observation
    options = [
        click(f"{axis}={values[0]}") for axis, values in page.state["available_options"].items()
    ]
    return played(
        world,
        task_id,
        [Action("search", task.instruction_simple), first_product, *options, click("buy now")],
    )
