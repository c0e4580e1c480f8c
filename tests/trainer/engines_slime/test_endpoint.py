"""A policy behind a chat server: requests, replies, repeats, and a whole evaluation."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from trainer.cli.main import main
from trainer.config import PolicyConfig
from trainer.engines.endpoint.client import EndpointClient, EndpointError
from trainer.engines.endpoint.overflow import room_for_an_answer
from trainer.engines.endpoint.policy import EndpointPolicy, turn_seed
from trainer.engines.endpoint.replies import turn_of
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.engines.open import open_policy
from trainer.errors import InputError
from trainer.files import write_json
from trainer.rollout.evaluate import Evaluation, Execution, build_plan
from trainer.rollout.policy import Conversation, Message
from trainer.rollout.providers import NoSkills
from trainer.shop.world import load_world


class ChatServer:
    """Answers with what ``answer(body)`` returns: status, headers, reply."""

    def __init__(self, answer):
        self.answer = answer
        self.bodies = []
        self.headers = []
        self.models = (404, {})  # what it serves, if it says
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, reply = server.models
                self.reply(status, {}, json.dumps(reply))

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.bodies.append(body)
                server.headers.append(dict(self.headers))
                status, headers, reply = server.answer(body)
                self.reply(status, headers, reply if isinstance(reply, str) else json.dumps(reply))

            def reply(self, status, headers, text):
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serve = partial(self.http.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"


@pytest.fixture
def serve():
    servers = []

    def start(answer):
        servers.append(ChatServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def settings_for(server, **changes):
    values = {"base_url": server.url, "model": "m", "backoff_seconds": 0.01, **changes}
    return EndpointSettings.model_validate(values)


def call(name, arguments, call_id="c1"):
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def reply_with(**message):
    finish = message.pop("finish_reason", "stop")
    return {
        "choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (None, "invalid_response_body"),
        ({}, "missing_choices"),
        ({"choices": []}, "missing_choices"),
        ({"choices": ["x"]}, "invalid_choice"),
        ({"choices": [{"message": None}]}, "invalid_message"),
        (reply_with(tool_calls=5), "invalid_tool_calls"),
        (reply_with(tool_calls=[{"type": "other"}]), "invalid_tool_call"),
        (reply_with(tool_calls=[{"type": "function", "id": "a"}]), "missing_function"),
        (reply_with(tool_calls=[call("search", "{}", "")]), "missing_tool_call_id"),
        (reply_with(tool_calls=[call("", "{}")]), "missing_tool_name"),
        (reply_with(tool_calls=[call("search", 5)]), "invalid_arguments_type"),
        (reply_with(tool_calls=[call("search", "{")]), "invalid_arguments_json"),
        (reply_with(tool_calls=[call("search", "[]")]), "invalid_arguments_object"),
    ],
)
def test_a_reply_that_cannot_be_read_is_an_error_of_the_policy_by_name(reply, problem):
    turn = turn_of(reply, latency_ms=1.0)
    assert turn.decode_error == problem
    assert turn.finish_reason == "stop"


def test_a_readable_reply_gives_text_reasoning_calls_and_usage():
    turn = turn_of(
        reply_with(
            content=None,
            reasoning_content="hm",
            tool_calls=[call("search", '{"query": "杯"}')],
            finish_reason="tool_calls",
        ),
        latency_ms=2.0,
    )
    assert turn.tool_calls[0].name == "search"
    assert turn.tool_calls[0].arguments == {"query": "杯"}
    assert turn.tool_calls[0].call_id == "c1"
    assert (turn.text, turn.reasoning, turn.decode_error) == ("", "hm", None)
    assert turn.usage == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert turn_of(reply_with(content="x", finish_reason="length"), latency_ms=0).finish_reason == (
        "length"
    )


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_status_that_means_later_is_asked_again(serve, status):
    replies = iter([(status, {"Retry-After": "0"}, "no"), (200, {}, reply_with(content="ok"))])
    server = serve(lambda body: next(replies))
    assert EndpointClient(settings_for(server)).complete({})["choices"]
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_any_other_status_fails_at_once(serve, status):
    server = serve(lambda body: (status, {}, "the context is full"))
    with pytest.raises(EndpointError, match=f"HTTP {status}: the context is full"):
        EndpointClient(settings_for(server)).complete({})
    assert len(server.bodies) == 1


def test_asking_again_has_an_end(serve):
    server = serve(lambda body: (503, {"Retry-After": "0"}, "busy"))
    with pytest.raises(EndpointError, match="asked 3 times"):
        EndpointClient(settings_for(server)).complete({})
    assert len(server.bodies) == 3


def test_the_key_comes_from_the_environment_and_is_in_no_error(serve, monkeypatch):
    server = serve(lambda body: (401, {}, "no"))
    client = EndpointClient(settings_for(server, api_key_env="TEST_ENDPOINT_KEY"))
    with pytest.raises(InputError, match="TEST_ENDPOINT_KEY"):
        client.complete({})
    monkeypatch.setenv("TEST_ENDPOINT_KEY", "hush-hush")
    with pytest.raises(EndpointError) as caught:
        client.complete({})
    assert server.headers[0]["Authorization"] == "Bearer hush-hush"
    assert "hush" not in str(caught.value)


def test_a_request_holds_the_sampling_and_the_tools_of_the_page(serve):
    server = serve(lambda body: (200, {}, reply_with(content="hello")))
    settings = settings_for(
        server, send_seed=True, extra_body={"chat_template_kwargs": {"enable_thinking": True}}
    )
    policy = EndpointPolicy(settings, temperature=0.6, max_new_tokens=99, checkpoint={})
    batch = policy.begin([Conversation((Message("user", "hi"),), "key")])
    tools = [{"type": "function", "function": {"name": "search"}}]
    batch.generate([0], [tools])
    batch.extend({0: (Message("tool", "page", "c9"),)})
    batch.generate([0], [()])
    first, second = server.bodies
    assert first["model"] == "m"
    assert first["temperature"] == 0.6
    assert first["top_p"] == 1.0
    assert first["max_tokens"] == 99
    assert first["tools"] == tools
    assert first["tool_choice"] == "auto"
    assert first["chat_template_kwargs"] == {"enable_thinking": True}
    assert first["seed"] == turn_seed("key", 0) != second["seed"]
    assert "tools" not in second
    assert second["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "tool", "content": "page", "tool_call_id": "c9"},
    ]


PROMPT_TOO_LONG = "The input (8195 tokens) is longer than the model's context length (8192 tokens)."
BOTH_TOO_LONG = (
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You "
    "requested a total of 8200 tokens: 8101 tokens from the input messages and 99 tokens for the "
    "completion."
)


@pytest.mark.parametrize(
    ("refusal", "room"),
    [
        (PROMPT_TOO_LONG, 0),
        (BOTH_TOO_LONG, 91),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8291 "
            "tokens (8192 in the messages, 99 in the completion).",
            0,
        ),
        (
            "This model's maximum context length is 8192 tokens and your request has 8000 input "
            "tokens (4096 > 8192 - 8000).",
            192,
        ),
        ("temperature must be non-negative, got -1.0", None),
    ],
)
def test_a_refusal_says_how_much_room_the_context_has(refusal, room):
    assert room_for_an_answer(json.dumps({"message": refusal})) == room


def two_turns(server):
    policy = EndpointPolicy(settings_for(server), temperature=0.6, max_new_tokens=99, checkpoint={})
    batch = policy.begin([Conversation((Message("user", "hi"),), "key")])
    first = batch.generate([0], [()])[0]
    batch.extend({0: (Message("user", "page"),)})
    return first, batch.generate([0], [()])[0]


def test_a_conversation_that_fills_the_context_has_reached_its_length(serve):
    server = serve(
        lambda body: (
            (400, {}, PROMPT_TOO_LONG)
            if len(body["messages"]) > 1
            else (200, {}, reply_with(content="hello"))
        )
    )
    first, second = two_turns(server)
    assert (first.finish_reason, second.finish_reason) == ("stop", "length")
    assert (second.text, second.tool_calls, second.decode_error) == ("", (), None)


def test_an_answer_is_asked_for_as_long_as_the_context_has_room(serve):
    server = serve(
        lambda body: (
            (400, {}, BOTH_TOO_LONG)
            if body["max_tokens"] > 91
            else (200, {}, reply_with(content="hello"))
        )
    )
    assert [turn.text for turn in two_turns(server)] == ["hello", "hello"]
    assert [body["max_tokens"] for body in server.bodies] == [99, 91, 99, 91]


def test_a_first_prompt_without_room_is_a_failure_in_the_words_of_the_server(serve):
    turn, _ = two_turns(serve(lambda body: (400, {}, PROMPT_TOO_LONG)))
    assert turn.finish_reason == "abort"
    assert "8195 tokens" in turn.decode_error


def test_the_addresses_of_a_server_are_no_part_of_the_identity(serve):
    one = EndpointSettings(base_url="http://a/v1", model="m")
    two = EndpointSettings(base_url="http://b:1/v1", model="m", concurrency=2, attempts=9)
    assert one.identity() == two.identity()


def test_weights_are_named_by_the_hash_of_their_export(tmp_path):
    world = load_world("standard")
    endpoint = {"base_url": "http://x/v1", "model": "m"}

    def identity(**changes):
        config = PolicyConfig.model_validate(
            {
                "engine": "endpoint",
                "checkpoint": tmp_path,
                "endpoint": {**endpoint, **changes},
                "max_new_tokens": 64,
            }
        )
        return open_policy(config, world, folder=tmp_path / "run").policy.identity()

    with pytest.raises(InputError, match="which weights are served"):
        identity()
    assert identity(checkpoint_id="base")["checkpoint_id"] == "base"
    write_json(tmp_path / "export.json", {"weights_sha256": "ab" * 32})
    assert identity()["checkpoint_id"] == "export-" + "ab" * 6
    assert identity()["weights_sha256"] == "ab" * 32


def test_a_world_of_words_has_no_use_for_a_chat_server(tmp_path):
    config = PolicyConfig.model_validate(
        {
            "engine": "endpoint",
            "checkpoint": tmp_path,
            "endpoint": {"base_url": "http://x/v1", "model": "m", "checkpoint_id": "b"},
        }
    )
    with pytest.raises(InputError, match="speaks words"):
        open_policy(config, load_world("mini"), folder=tmp_path)


def test_a_whole_evaluation_wins_and_a_server_that_fails_once_costs_nothing(serve, tmp_path):
    world = load_world("standard")
    task_ids = world.split("train")[:1]
    seen = []

    def shop(body):
        """Buys what is wanted, judging by how many turns the conversation already has."""
        seen.append(body)
        if len(seen) == 3:
            return 500, {}, "once"
        text = body["messages"][1]["content"]
        task = next(world.task(t) for t in task_ids if world.task(t).instruction_simple in text)
        product = world.catalogue.products[task.asin]
        clicks = [task.asin]
        for axis, values in product.options.items():
            value = next((v for v in values if v in task.goal_options), values[0])
            clicks.append(f"{axis}={value}")
        clicks.append("buy now")
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        name, argument = ("search", "query") if turn == 0 else ("click", "value")
        value = task.name if turn == 0 else clicks[turn - 1]
        made = call(name, json.dumps({argument: value}, ensure_ascii=False), f"call-{turn}")
        return 200, {}, reply_with(content=None, tool_calls=[made], finish_reason="tool_calls")

    server = serve(shop)
    policy = EndpointPolicy(
        settings_for(server, attempts=1, concurrency=2),
        temperature=0.6,
        max_new_tokens=64,
        checkpoint={"checkpoint_id": "c"},
    )
    plan = build_plan(
        world, policy, NoSkills(), split="train", task_ids=task_ids, seed=1, repeats=2
    )
    run = Evaluation(world, policy, NoSkills(), plan, Execution(batch_size=2, attempts=3))
    summary = run.run(tmp_path)
    assert summary["counts"]["completed"] == 2
    assert summary["primary"]["success_rate"] == 1.0
    assert summary["cost"]["tokens"]["prompt_tokens"] > 0


def test_an_evaluation_that_cannot_be_finished_says_why(serve, tmp_path, capsys):
    """The last line of its log is what a stage shows as the reason."""
    server = serve(lambda body: (400, {}, PROMPT_TOO_LONG))
    endpoint = {"base_url": server.url, "model": "m", "checkpoint_id": "c"}
    config = tmp_path / "bare.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "stage": "evaluate",
                "name": "bare",
                "output_dir": str(tmp_path / "bare"),
                "world": {"profile": "standard"},
                "policy": {
                    "engine": "endpoint",
                    "checkpoint": str(tmp_path),
                    "endpoint": endpoint,
                    "max_new_tokens": 99,
                },
                "tasks": {"split": "val", "limit": 2},
                "attempts": 1,
            }
        )
    )
    assert main(["evaluate", "run", str(config)]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"2 episodes failed; 2 of them: HTTP 400: {PROMPT_TOO_LONG}"
