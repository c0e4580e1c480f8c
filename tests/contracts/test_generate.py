"""``generate``: exact tokens, masks and log-probabilities; failures of every class; closing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contracts.harness import sampling_params
from tests.contracts.scripted_engine import log_prob_of
from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from tests.contracts.toy_tokenizer import answer
from trainer.engines.slime import parsing
from trainer.engines.slime.hooks import generate
from trainer.files import read_json
from trainer.rollout.live import read_live

LAYOUTS = ["turn", "episode"]


def trace_of(row):
    """The trace a row points to."""
    return read_json(Path(row.metadata["shopsim_trace_path"]))


def sampled_tokens(rows):
    """(token, log-probability) of everything the trainer trains, in order."""
    return [
        (token, log_prob)
        for row in rows
        for token, mask, log_prob in zip(
            row.tokens[-row.response_length :], row.loss_mask, row.rollout_log_probs, strict=True
        )
        if mask
    ]


def expected_tokens(slime, session, turns):
    """What the engine drew in ``turns``, as it drew it."""
    drawn = []
    for number, text in enumerate(turns, 1):
        ids = [*slime.tokenizer.encode(text), slime.tokenizer.eos_token_id]
        drawn += [(token, log_prob_of(session, number, place)) for place, token in enumerate(ids)]
    return drawn


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("recorder", ["auto", "own"])
def test_every_sampled_token_is_trained_exactly_once_with_its_own_log_probability(
    slime, layout, recorder
):
    play = winning(tasks()[0])
    engine = slime.play(by_session(lambda group, sample, retry: play))
    args = slime.args(shopsim_sample_layout=layout, shopsim_recorder=recorder)
    first, second = slime.generate(slime.group(0), args)
    for rows, index in ((first, 0), (second, 1)):
        session = next(
            r["session"] for r in engine.requests if r["session"].endswith(f"-0-{index}")
        )
        assert sampled_tokens(rows) == expected_tokens(slime, session, play)
        for row in rows:
            assert len(row.loss_mask) == len(row.rollout_log_probs) == row.response_length
            pairs = zip(row.rollout_log_probs, row.loss_mask, strict=True)
            assert all(log_prob == 0.0 for log_prob, mask in pairs if not mask)
            assert row.rollout_id == row.index == index
            assert row.group_index == 0
            assert row.reward == first[0].reward
            assert row.reward["r_success"] == 1.0
            assert row.status is slime.Sample.Status.COMPLETED
            assert row.metadata["shopsim_scored"] is True
    assert len(first) == (1 if layout == "episode" else len(play))


def test_an_episode_is_told_of_while_it_is_played(slime):
    """The side file of the step holds every turn as the trace does, and knows of the end."""
    play = winning(tasks()[0])
    slime.play(by_session(lambda group, sample, retry: play))
    rows = slime.generate(slime.group(0))
    whole = {trace["episode_id"]: trace for trace in (trace_of(sample[0]) for sample in rows)}
    folder = Path(rows[0][0].metadata["shopsim_trace_path"]).parents[1]
    told = list(read_live(next((folder / "live").iterdir())))
    assert {trace["episode_id"] for trace in told} == set(whole)
    for trace in told:
        assert trace["steps"] == whole[trace["episode_id"]]["steps"]
        assert trace["status"] == "completed" and "goal" not in trace["final"]


def test_no_token_is_tokenised_again(slime):
    """The engine draws ids that the tokenizer would never make of their text."""
    odd = [ord(c) + 6 for c in "<|im_end|>"]  # spelled out, not the special token
    play = winning(tasks()[0])

    def script(session, turn):
        return play[turn - 1]

    engine = slime.play(script)
    original = engine.tokenizer.encode
    engine.tokenizer.encode = lambda text, **k: [*odd, *original(text)]  # type: ignore[method-assign]
    rows = slime.generate(slime.group(0), slime.args())[0]
    assert [token for token, _ in sampled_tokens(rows)][: len(odd)] == odd


def test_the_prompt_of_a_turn_holds_the_tools_of_its_page(slime):
    play = winning(tasks()[0])
    engine = slime.play(by_session(lambda group, sample, retry: play))
    slime.generate(slime.group(0, size=2), slime.args())
    prompts = [slime.tokenizer.decode(r["input_ids"]) for r in engine.requests]
    first = next(text for text in prompts if text.count("<|im_start|>assistant") == 1)
    second = next(text for text in prompts if text.count("<|im_start|>assistant") == 2)
    assert '"name": "search"' in first and '"name": "click"' not in first
    assert '"name": "click"' in second and '"name": "search"' not in second.partition("</tools>")[0]
    assert '"enum"' in second


def test_an_appended_prompt_extends_what_was_sampled_and_keeps_its_tools(slime):
    play = winning(tasks()[0])
    engine = slime.play(by_session(lambda group, sample, retry: play))
    slime.generate(slime.group(0), slime.args(shopsim_sample_layout="episode"))
    session = engine.requests[0]["session"]
    prompts = [r["input_ids"] for r in engine.requests if r["session"] == session]
    for before, after, said in zip(prompts, prompts[1:], play, strict=False):
        sampled = [*slime.tokenizer.encode(said), slime.tokenizer.eos_token_id]
        assert after[: len(before) + len(sampled)] == [*before, *sampled]
    text = slime.tokenizer.decode(prompts[-1])
    assert text.count("<tools>") == 1
    assert '"enum"' not in text
    assert "<|im_end|>\n<|im_start|>user\n<tool_response>" in text


def test_past_reasoning_is_told_to_later_turns_only_when_asked_for(slime):
    play = [answer("search", thought="深思", query="x"), "nothing"]
    for echo in (False, True):
        engine = slime.play(by_session(lambda group, sample, retry: play))
        args = slime.args(shopsim_echo_reasoning=echo, shopsim_max_steps=2)
        slime.generate(slime.group(3 + echo), args)
        last = slime.tokenizer.decode(engine.requests[-1]["input_ids"])
        assert ("深思" in last) is echo


def test_a_call_the_page_does_not_offer_is_repaired_without_touching_the_shop(slime):
    play = [answer("click", value="buy now"), *winning(tasks()[0])]
    slime.play(by_session(lambda group, sample, retry: play))
    rows = slime.generate(slime.group(0), slime.args())[0]
    trace = trace_of(rows[0])
    first = trace["steps"][0]
    assert first["protocol_error"]["code"] == "unavailable_tool"
    assert first["action"] is None
    assert "tool_protocol_error" in first["protocol_feedback"]
    assert rows[0].reward["r_success"] == 1.0
    assert len(sampled_tokens(rows)) > 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("only words", "tool_call_count"),
        (answer("search", query="a") + answer("search", query="b")[10:], "tool_call_count"),
        ("t\n</think>\n\nvisible" + answer("search", query="a")[18:], "mixed_content"),
        (answer("fly", query="a"), "unavailable_tool"),
        (answer("search", words="a"), "invalid_tool_arguments"),
        (answer("search", query="  "), "invalid_tool_arguments"),
    ],
)
def test_each_protocol_error_is_named_and_costs_a_turn(slime, text, code):
    slime.play(by_session(lambda group, sample, retry: [text, *winning(tasks()[0])]))
    rows = slime.generate(slime.group(0), slime.args())[0]
    trace = trace_of(rows[0])
    assert trace["steps"][0]["protocol_error"]["code"] == code
    assert trace["status"] == "completed"
    assert rows[0].metadata["shopsim_scored"] is True


@pytest.mark.parametrize(
    "written",
    [
        '{"query": NaN}',
        '{"query": 1e999}',
        '{"query": ' + "[" * 3000 + "]" * 3000 + "}",
        '{"query": ' + "9" * 5000 + "}",
        '["query"]',
        '{"query": "\\ud800"}',
        '{"\\udfff": "a", "query": "b"}',
    ],
)
def test_nothing_that_a_model_can_write_ends_the_job(slime, monkeypatch, written):
    """Parsers hand numbers that JSON lacks and halves of surrogate pairs on as they are."""
    find = parsing.find_calls
    monkeypatch.setattr(
        parsing,
        "find_calls",
        lambda body, tools, parser: (
            ("", [("search", written)], None) if "odd" in body else find(body, tools, parser)
        ),
    )
    slime.play(by_session(lambda group, sample, retry: ["odd", *winning(tasks()[0])]))
    rows = slime.generate(slime.group(0), slime.args())[0]
    trace = trace_of(rows[0])
    assert trace["status"] == "completed", trace["error"]
    assert rows[0].metadata["shopsim_scored"] is True
    first = trace["steps"][0]
    assert first["action"] is not None or first["protocol_error"]["code"] == (
        "invalid_tool_arguments"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_template_that_fails_on_one_text_loses_one_episode(slime, monkeypatch, layout):
    render = slime.tokenizer.apply_chat_template

    def template(self, messages, **options):
        if any("odd" in (message.get("content") or "") for message in messages):
            raise ValueError("no such text")
        return render(messages, **options)

    monkeypatch.setattr(type(slime.tokenizer), "apply_chat_template", template)
    slime.play(by_session(lambda g, sample, r: ["odd words"] if sample else winning(tasks()[0])))
    whole, lost = slime.generate(slime.group(0), slime.args(shopsim_sample_layout=layout))
    assert whole[0].reward["r_success"] == 1.0
    if layout == "turn":
        assert lost[0].metadata["shopsim_failure"] == "contract"
        assert "no such text" in trace_of(lost[0])["error"]["message"]
    else:  # what was sampled is never rendered again
        assert lost[0].metadata["shopsim_scored"] is True


def test_text_beside_the_end_token_is_not_shown_to_later_turns(slime):
    engine = slime.play(by_session(lambda g, s, r: ["only words", *winning(tasks()[0])]))
    slime.generate(slime.group(0), slime.args())
    session = engine.requests[0]["session"]
    prompt = [r for r in engine.requests if r["session"] == session][1]["input_ids"]
    text = slime.tokenizer.decode(prompt)
    assert "only words<|im_end|>\n" in text
    assert "<|im_end|><|im_end|>" not in text


def test_a_turn_cut_off_without_a_call_ends_the_episode_scored_zero(slime):
    slime.play(lambda session, turn: {"text": "thinking for ever", "finish": "length"})
    rows = slime.generate(slime.group(0), slime.args(shopsim_full_skill_retry=False))[0]
    assert rows[0].status is slime.Sample.Status.TRUNCATED
    assert rows[0].reward["reward"] == 0.0
    assert rows[0].metadata["shopsim_scored"] is True
    trace = trace_of(rows[0])
    assert trace["final"]["termination_reason"] == "generation_length"
    assert len(sampled_tokens(rows)) == len("thinking for ever")


def test_a_turn_cut_off_after_a_whole_call_goes_on(slime):
    play = winning(tasks()[0])

    def script(session, turn):
        return {"text": play[0], "finish": "length"} if turn == 1 else play[turn - 1]

    slime.play(script)
    rows = slime.generate(slime.group(0), slime.args(shopsim_sample_layout="episode"))[0]
    assert rows[0].reward["r_success"] == 1.0


def test_the_turn_limit_ends_the_episode_scored_zero(slime):
    slime.play(lambda session, turn: "never a call")
    args = slime.args(shopsim_max_steps=3, shopsim_full_skill_retry=False)
    rows = slime.generate(slime.group(0), args)[0]
    trace = trace_of(rows[0])
    assert len(trace["steps"]) == 3
    assert trace["final"]["termination_reason"] == "action_limit"
    assert rows[0].status is slime.Sample.Status.COMPLETED


@pytest.mark.parametrize(
    ("reply", "category", "kind"),
    [
        ({"status": 500}, "engine", "TechnicalFailure"),
        ({"raw": "not json"}, "engine", "TechnicalFailure"),
        ({"raw": {"text": "no meta"}}, "engine", "TechnicalFailure"),
        ({"raw": {"meta_info": {"completion_tokens": 3}}}, "engine", "TechnicalFailure"),
        ({"raw": {"meta_info": {"output_token_logprobs": [3]}}}, "engine", "TechnicalFailure"),
        ({"text": "x", "finish": "abort"}, "aborted", "TechnicalFailure"),
        ({"text": "xy", "log_probs": [-1.0, float("nan"), -1.0]}, "engine", "TechnicalFailure"),
    ],
)
def test_a_technical_failure_gives_one_row_that_trains_nothing(slime, reply, category, kind):
    play = winning(tasks()[0])
    slime.play(lambda session, turn: play[0] if turn == 1 else reply)
    rows = slime.generate(slime.group(0), slime.args())[0]
    assert len(rows) == 1
    row = rows[0]
    assert row.tokens == [0, 0]
    assert (row.response, row.response_length) == ("", 1)
    assert row.loss_mask == [0]
    assert row.rollout_log_probs == [0.0]
    assert row.reward == {"reward": 0.0, "r_strict": 0.0, "r_success": 0.0}
    assert row.remove_sample is True
    assert row.status is slime.Sample.Status.ABORTED
    assert row.rollout_id == row.index
    assert row.metadata["shopsim_scored"] is False
    assert row.metadata["shopsim_abort_reason"] == kind
    assert row.metadata["shopsim_failure"] == category
    trace = trace_of(row)
    assert trace["status"] == "failed"
    assert trace["error"]["category"] == category
    assert trace["error"]["stage"] == "model_step_2"


def test_a_first_prompt_that_fills_the_context_cannot_be_scored(slime):
    slime.play(lambda session, turn: "x")
    args = slime.args(rollout_max_context_len=40, shopsim_full_skill_retry=False)
    rows = slime.generate(slime.group(0), args)[0]
    assert rows[0].metadata["shopsim_abort_reason"] == "EmptyTrajectory"
    assert rows[0].metadata["shopsim_failure"] == "context_overflow"
    assert slime.engine.requests == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_later_prompt_that_fills_the_context_is_a_scored_failure(slime, layout):
    play = winning(tasks()[0])
    engine = slime.play(by_session(lambda group, sample, retry: play))
    slime.generate(slime.group(0), slime.args(shopsim_sample_layout=layout))
    session = engine.requests[0]["session"]
    lengths = [len(r["input_ids"]) for r in engine.requests if r["session"] == session]
    cap = max(lengths[1], lengths[0] + len(play[0]) + 1)
    slime.play(by_session(lambda group, sample, retry: play))
    args = slime.args(
        shopsim_sample_layout=layout,
        rollout_max_context_len=cap,
        shopsim_full_skill_retry=False,
    )
    rows = slime.generate(slime.group(40), args)[0]
    assert rows[0].status is slime.Sample.Status.TRUNCATED
    assert rows[0].reward["reward"] == 0.0
    assert all(len(row.tokens) <= cap for row in rows)
    assert sampled_tokens(rows)


def test_new_tokens_are_capped_by_the_turn_and_by_what_the_context_leaves(slime):
    play = winning(tasks()[0])
    engine = slime.play(by_session(lambda group, sample, retry: play))
    args = slime.args(rollout_max_response_len=100, rollout_max_context_len=24576)
    slime.generate(slime.group(0), args)
    for request in engine.requests:
        params = request["sampling_params"]
        assert params["max_new_tokens"] == min(100, 24576 - len(request["input_ids"]))
        assert params["temperature"] == 0.6
        assert params["skip_special_tokens"] is False
        assert request["return_logprob"] is True


def test_rows_know_the_weights_they_were_sampled_from(slime):
    play = winning(tasks()[0])
    slime.play(by_session(lambda group, sample, retry: play))
    rows = slime.generate(slime.group(0), slime.args(shopsim_recorder="own"))[0]
    assert rows[0].weight_versions == ["7"]
    trace = trace_of(rows[0])
    assert trace["training"]["weight_version"] == "7"
    assert trace["tokens"]["sampled"] == len(sampled_tokens(rows))
    assert trace["tokens"]["rows"] == len(play)


@pytest.mark.parametrize(
    ("changes", "sample_changes", "evaluation", "error"),
    [
        ({"partial_rollout": True}, {}, False, AssertionError),
        ({"group_rm": True}, {}, False, ValueError),
        ({"rollout_top_p": 0.9}, {}, False, ValueError),
        ({"rollout_top_k": 5}, {}, False, ValueError),
        ({}, {"metadata": {"task_id": 0, "split": "test"}}, False, ValueError),
        ({}, {}, True, ValueError),
        ({}, {"metadata": {}, "prompt": "no number"}, False, ValueError),
    ],
)
def test_requests_that_training_must_not_serve_are_refused(
    slime, changes, sample_changes, evaluation, error
):
    slime.play(lambda session, turn: "x")
    sample = slime.group(0)[0]
    for name, value in sample_changes.items():
        setattr(sample, name, value)
    args = slime.args(**changes)
    with pytest.raises(error):
        asyncio.run(generate(args, sample, sampling_params(args), evaluation=evaluation))
    assert slime.engine.requests == []


def test_a_wrong_purchase_is_scored_and_not_a_success(slime):
    play = losing(tasks()[0])
    slime.play(by_session(lambda group, sample, retry: play))
    rows = slime.generate(slime.group(0), slime.args(shopsim_full_skill_retry=False))[0]
    assert rows[0].reward["r_success"] == 0.0
    assert rows[0].metadata["shopsim_scored"] is True
    assert rows[0].status is slime.Sample.Status.COMPLETED
