"""Price annotations by a language model (environment.md §1.7.3–4)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import IncompleteError
from trainer.shop.data.annotate import AnnotatorIdentity, EndpointError, PriceAnnotator, openai_ask
from trainer.shop.data.annotation import Annotation, AnnotationError, read_annotation

TEXT = "想买台灯，300元左右"
IDENTITY = AnnotatorIdentity("abc", "http://model.invalid/v1", "m")


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "task_id": 7,
        "kind": "approximate_upper",
        "amount": 300,
        "evidence": "300元左右",
        **changes,
    }


def test_an_approximate_ceiling_is_ten_percent_more() -> None:
    assert read_annotation(answer(), 7, TEXT).ceiling == 330.0
    assert read_annotation(answer(kind="hard_upper"), 7, TEXT).ceiling == 300


@pytest.mark.parametrize("kind", ["lower_only", "non_total_price", "ambiguous"])
def test_kinds_without_amount_give_no_ceiling(kind: str) -> None:
    assert read_annotation(answer(kind=kind, amount=None), 7, TEXT).ceiling is None


@pytest.mark.parametrize(
    "changes",
    [
        {"task_id": 8},
        {"kind": "cheap"},
        {"amount": 0},
        {"amount": -1},
        {"amount": None},
        {"amount": float("inf")},
        {"amount": True},
        {"amount": "300"},
        {"evidence": "400元"},
        {"evidence": ""},
        {"evidence": None},
        {"kind": "no_budget", "amount": None},
        {"kind": "ambiguous"},
        {"extra": 1},
    ],
)
def test_an_answer_that_breaks_the_contract_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(AnnotationError):
        read_annotation(answer(**changes), 7, TEXT)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json"])
def test_text_that_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(AnnotationError):
        read_annotation(text, 7, TEXT)


class Model:
    """Answers from a table; counts the questions."""

    def __init__(self, **by_text: dict[str, Any]) -> None:
        self.by_text = by_text
        self.asked: list[str] = []

    def __call__(self, system: str, user: str) -> str:
        self.asked.append(user)
        head, text = user.split("\n")
        reply = {"task_id": int(head.split()[1]), **self.by_text[text]}
        return json.dumps(reply)


NONE = {"kind": "no_budget", "amount": None, "evidence": ""}
HARD = {"kind": "hard_upper", "amount": 50, "evidence": "50元"}


def test_the_full_text_is_asked_only_when_the_short_one_names_no_ceiling(tmp_path: Path) -> None:
    model = Model(短=NONE, 全50元=HARD, 短50元=HARD)
    annotator = PriceAnnotator(model, IDENTITY, tmp_path / "cache.jsonl")
    found = annotator.annotate([(1, "短", "全50元"), (2, "短50元", "全50元")], workers=1)
    assert {i: a.ceiling for i, a in found.items()} == {1: 50, 2: 50}
    assert len(model.asked) == 3


def test_answers_are_kept_and_asked_again_under_another_identity(tmp_path: Path) -> None:
    cache = tmp_path / "cache.jsonl"
    tasks = [(n, "短", "全50元") for n in range(20)]
    PriceAnnotator(Model(短=NONE, 全50元=HARD), IDENTITY, cache).annotate(tasks)
    silent = Model()
    again = PriceAnnotator(silent, IDENTITY, cache).annotate(tasks)
    assert again[3] == Annotation(3, "hard_upper", 50, "50元")
    assert silent.asked == []
    other = AnnotatorIdentity("abc", "http://model.invalid/v1", "other")
    model = Model(短=NONE, 全50元=HARD)
    PriceAnnotator(model, other, cache).annotate(tasks[:1])
    assert len(model.asked) == 2


class Endpoint:
    """An OpenAI-compatible endpoint with one answer; keeps what it was asked."""

    def __init__(self, content: str, *, choices: int = 1) -> None:
        self.requests: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                endpoint.requests.append(json.loads(self.rfile.read(length)))
                message = {"role": "assistant", "content": content}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
                data = json.dumps({**reply, "choices": [choice] * choices}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def test_the_endpoint_is_asked_as_the_contract_says(tmp_path: Path) -> None:
    endpoint = Endpoint(json.dumps({"task_id": 1, **HARD}))
    ask = openai_ask(endpoint.url, "m", None)
    annotator = PriceAnnotator(ask, IDENTITY, tmp_path / "cache.jsonl")
    assert annotator.annotate([(1, "短50元", "短50元")])[1].ceiling == 50
    endpoint.server.shutdown()
    endpoint.server.server_close()
    (request,) = endpoint.requests
    assert (request["temperature"], request["max_tokens"]) == (0, 128)
    assert request["response_format"]["json_schema"]["strict"] is True
    assert request["chat_template_kwargs"] == {"enable_thinking": False}
    assert request["messages"][1]["content"] == "task_id: 1\n短50元"


def test_an_endpoint_that_fails_is_named_and_not_asked_about_every_task(tmp_path: Path) -> None:
    asked = []

    def unreachable(system: str, user: str) -> str:
        asked.append(user)
        raise EndpointError("http://model.invalid/v1: connection refused")

    cache = tmp_path / "cache.jsonl"
    annotator = PriceAnnotator(unreachable, IDENTITY, cache)
    with pytest.raises(IncompleteError, match=f"connection refused.*kept in {cache}"):
        annotator.annotate([(number, "短", "短") for number in range(5000)], workers=2)
    assert len(asked) < 5000


def test_an_endpoint_without_a_choice_breaks_the_contract() -> None:
    endpoint = Endpoint("", choices=0)
    with pytest.raises(AnnotationError, match="no choice"):
        openai_ask(endpoint.url, "m", None)("system", "user")
    endpoint.server.shutdown()
    endpoint.server.server_close()


def test_a_broken_answer_is_asked_three_times_and_then_named(tmp_path: Path) -> None:
    model = Model(短={**HARD, "evidence": "60元"}, 短50元=HARD)
    annotator = PriceAnnotator(model, IDENTITY, tmp_path / "cache.jsonl")
    with pytest.raises(IncompleteError, match="1 of 2 price annotations failed; first: task 4"):
        annotator.annotate([(4, "短", "短"), (5, "短50元", "短50元")], workers=1)
    assert len(model.asked) == 4
