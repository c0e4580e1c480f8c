"""slime's own adapter and trajectory manager against our recorder: the same tokens and masks."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tests.contracts import parsers
from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from trainer.engines.slime import runtime
from trainer.engines.slime.history import fixed_tools, render
from trainer.engines.slime.recorders import (
    Echo,
    OwnRecorder,
    SlimeRecorder,
    make_adapter,
    slime_records_turns,
)
from trainer.engines.slime.samples import Turn
from trainer.http_library import http


def content(rows):
    """What the trainer reads of each row."""
    return [(row.tokens, row.response_length, row.loss_mask, row.rollout_log_probs) for row in rows]


def needs_manager():
    if not slime_records_turns():
        pytest.skip("this slime has no trajectory manager that keeps every sampled token")


@pytest.mark.parametrize("echo", [False, True])
def test_both_recorders_make_the_same_rows_of_whole_episodes(checkout, echo):
    needs_manager()
    rows = {}
    for recorder in ("own", "slime"):
        play = ["words first", *winning(tasks()[0])]
        checkout.play(by_session(lambda group, sample, retry, play=play: play))
        args = checkout.args(shopsim_recorder=recorder, shopsim_echo_reasoning=echo)
        # Log-probabilities tell sessions apart, so the group is the same one in a new runtime.
        runtime.reset()
        rows[recorder] = checkout.generate(checkout.group(0), args)
    for mine, theirs in zip(rows["own"], rows["slime"], strict=True):
        assert content(mine) == content(theirs)
        for left, right in zip(mine, theirs, strict=True):
            assert left.response == right.response
            assert left.reward == right.reward
            assert left.rollout_id == right.rollout_id
            assert left.status == right.status


def needs_adapter():
    """A weaker demand: the adapter and the manager know a threshold."""
    pytest.importorskip("slime.agent.adapters.openai", reason="this slime has no agent adapters")
    from slime.agent.trajectory import TrajectoryManager

    if "fork_threshold_tokens" not in inspect.signature(TrajectoryManager.__init__).parameters:
        pytest.skip("this slime's trajectory manager has no fork_threshold_tokens")


def turns_of(prefixes, outputs):
    return [
        Turn(tuple(prompt), tuple(output), (-0.25,) * len(output), "stop")
        for prompt, output in zip(prefixes, outputs, strict=True)
    ]


def samples_of(recorder, base, turns, messages):
    for index, turn in enumerate(turns):
        prompt, said = messages[index]
        recorder.record(turn, Echo(prompt, said, index + 1))
    return asyncio.run(recorder.samples(base))


def chain(count):
    """Messages of an append-only conversation: prompts and answers of ``count`` turns."""
    history = [{"role": "user", "content": "begin"}]
    pairs = []
    for index in range(count):
        said = {"role": "assistant", "content": f"answer {index}"}
        pairs.append((list(history), said))
        history += [said, {"role": "tool", "content": f"page {index}"}]
    return pairs


def test_contiguous_turns_become_one_row_in_both_with_every_token_kept(checkout):
    needs_manager()
    prompts, held, outputs = [], [1, 2, 3], []
    for index in range(4):
        prompts.append(list(held))
        outputs.append([100 + index, 200 + index])
        held += [*outputs[-1], 9, 9 + index]
    base = checkout.group(0)[0]
    adapter = make_adapter(checkout.tokenizer, "http://x", tool_parser="a", reasoning="b")

    async def theirs():
        recorder = SlimeRecorder(adapter, "sid", max_tokens=0)
        for (prompt, said), turn in zip(chain(4), turns_of(prompts, outputs), strict=True):
            recorder.record(turn, Echo(prompt, said, 1))
        return await recorder.samples(base)

    own = OwnRecorder(checkout.tokenizer, contiguous=True, max_tokens=0)
    mine = samples_of(own, base, turns_of(prompts, outputs), chain(4))
    slimes = asyncio.run(theirs())
    assert len(mine) == len(slimes) == 1
    assert content(mine) == content(slimes)
    assert sum(mine[0].loss_mask) == 8


def test_the_default_threshold_of_slime_would_lose_sampled_tokens(checkout):
    """Why it is 0: a re-rendered short turn is otherwise taken out of the loss."""
    needs_adapter()
    from slime.agent.trajectory import TrajectoryManager, TurnRecord

    kept = {}
    for threshold in (None, 0):
        manager = TrajectoryManager(fork_threshold_tokens=threshold)
        history = [{"role": "user", "content": "begin"}]
        for index in range(4):
            said = {"role": "assistant", "content": f"answer {index}"}
            manager.record_turn(
                "sid",
                turn=TurnRecord([1, 2, index], [7, 8, index], "stop", [-0.5] * 3),
                prompt_messages=list(history),
                response_message=said,
            )
            echoed = {**said, "reasoning_content": "thought"}
            history += [echoed, {"role": "tool", "content": f"page {index}"}]
        samples = manager.get_trajectory("sid", base_sample=checkout.group(0)[0])
        kept[threshold] = sum(sum(sample.loss_mask) for sample in samples)
    assert kept[0] == 12
    assert kept[None] < 12


def test_a_conversation_through_slimes_openai_adapter_gives_our_tokens(checkout):
    """Real HTTP on both sides: client -> slime's adapter -> scripted engine."""
    needs_adapter()
    if not parsers.has_sglang():
        pytest.skip("slime's adapter parses with SGLang, which is not installed")
    from aiohttp.test_utils import TestServer

    play = losing(tasks()[0])[:3]
    engine = checkout.play(lambda session, turn: play[turn - 1])
    host, port = checkout.address
    adapter = make_adapter(
        checkout.tokenizer, f"http://{host}:{port}", tool_parser="qwen3_coder", reasoning="qwen3"
    )
    tools = fixed_tools()
    base = checkout.group(0)[0]

    async def talk():
        server = TestServer(adapter.app)
        await server.start_server()
        adapter.open_session("sid", sampling_defaults={"temperature": 0.6}, max_context_tokens=9000)
        messages = [{"role": "user", "content": "begin"}]
        async with http().AsyncClient(timeout=30) as client:
            for index in range(len(play)):
                reply = await client.post(
                    str(server.make_url("/v1/chat/completions")),
                    json={"messages": messages, "tools": tools},
                    headers={"Authorization": "Bearer sid"},
                )
                said = reply.json()["choices"][0]["message"]
                assert said["tool_calls"][0]["function"]["name"] in ("search", "click")
                said.pop("reasoning_content", None)
                messages += [
                    said,
                    {
                        "role": "tool",
                        "tool_call_id": said["tool_calls"][0]["id"],
                        "content": f"page {index}",
                    },
                ]
        samples = await adapter.finish_session("sid", base_sample=base, reward=0.5)
        again = await adapter.finish_session("sid", base_sample=base)
        await server.close()
        return samples, again, messages

    samples, again, messages = asyncio.run(talk())
    assert again == []
    requests = [r for r in engine.requests if r["session"] == "sid"]
    assert len(requests) == len(play)
    assert requests[0]["input_ids"] == render(checkout.tokenizer, messages[:1], tools)
    own = OwnRecorder(checkout.tokenizer, contiguous=False, max_tokens=9000)
    for number, request in enumerate(requests, 1):
        _, data = engine.answer("sid", number, request)
        drawn = data["meta_info"]["output_token_logprobs"]
        own.record(
            Turn(
                tuple(request["input_ids"]),
                tuple(item[1] for item in drawn),
                tuple(item[0] for item in drawn),
                "stop",
            ),
            Echo([], {}, number),
        )
    mine = asyncio.run(own.samples(base))
    assert content(samples) == content(mine)
