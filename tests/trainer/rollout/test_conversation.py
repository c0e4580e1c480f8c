"""What a policy is told: the layout of training.md §1.4 and environment.md §2.8, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.rollout.standard_world import standard_world
from trainer.canonical import fingerprint
from trainer.rollout import prompts
from trainer.rollout.conversation import (
    FunctionConversation,
    conversation_builder,
    render_chunks,
)
from trainer.rollout.policy import Message, ModelTurn
from trainer.shop.session import ShopSession
from trainer.shop.world import World
from trainer.skills.types import Chunk

BUILDER = FunctionConversation("系统提示  \n")
CHUNKS = (Chunk("a-1", "\n规则甲\n", "2"), Chunk('q"b', "规则乙"))


def prompt(task_id: int, chunks: tuple[Chunk, ...] = ()) -> tuple[Message, ...]:
    world = standard_world()
    session = ShopSession(world, task_id)
    return BUILDER.prompt(world.task(task_id), chunks, session.reset())


def test_system_message_persona_and_chunks_are_separated_by_one_blank_line() -> None:
    system, _ = prompt(1, CHUNKS)
    assert system.content == (
        "系统提示\n"
        "\n"
        "用户个人文档：\n"
        '{"偏好": {"颜色": "白色"}, "预算": "250元"}\n'
        "\n"
        f"{prompts.SKILL_TITLE}\n"
        f"{prompts.SKILL_CAUTION}\n"
        '<skill id="a-1" version="2">\n'
        "规则甲\n"
        "</skill>\n"
        '<skill id="q\\"b" version="1">\n'
        "规则乙\n"
        "</skill>"
    )


def test_without_chunks_there_is_no_trace_of_a_block() -> None:
    system, user = prompt(2)
    assert system.content == "系统提示"
    assert user.role == "user"


def test_the_task_comes_before_the_page() -> None:
    world = standard_world()
    page = ShopSession(world, 1).reset().text
    assert prompt(1)[1].content == f"购物任务：\n买一台迷你冰箱\n\n{page}"


def test_a_task_without_persona_shows_its_full_text() -> None:
    assert "买一台白色的静音迷你冰箱，预算250元" in prompt(2)[1].content


def test_chunks_keep_the_order_they_are_given_in() -> None:
    assert render_chunks(CHUNKS) != render_chunks(CHUNKS[::-1])


def test_the_identity_names_versions_and_the_prompts_hash() -> None:
    assert BUILDER.identity() == {
        "prompt_version": "intraskill-shopping-agent-tools-v1",
        "system_prompt_sha256": fingerprint("系统提示  \n"),
        "skill_renderer_version": "plain-skill-context-v1",
    }


def test_the_world_decides_how_it_speaks(mini: World) -> None:
    assert conversation_builder(mini).identity()["prompt_version"] == prompts.WORD_PROMPT_VERSION
    standard = conversation_builder(standard_world()).identity()
    assert standard["prompt_version"] == prompts.PROMPT_VERSION


def test_a_word_prompt_holds_chunks_persona_and_request(mini: World) -> None:
    task_id = mini.split("val")[0]
    task = mini.task(task_id)
    page = ShopSession(mini, task_id).reset()
    messages = conversation_builder(mini).prompt(task, (Chunk("x", "Think slowly!"),), page)
    assert messages[0].content.startswith("skill think slowly ; persona")
    assert messages[1].content == f"request {task.instruction_simple}"
    assert messages[2].content == page.text == "home"


@pytest.mark.parametrize("code", sorted(prompts.PROTOCOL_MESSAGES))
def test_every_protocol_error_has_its_own_message(code: str) -> None:
    world = standard_world()
    state: Any = ShopSession(world, 1).reset().state
    answer = BUILDER.feedback(ModelTurn("", "stop"), code, state)
    assert prompts.PROTOCOL_MESSAGES[code] in answer[0].content
    assert prompts.PROTOCOL_FALLBACK not in answer[0].content
