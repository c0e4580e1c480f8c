"""A server that speaks the chat protocol, with a gold-aware model behind it and faults on demand.

The model wins its first trial by looking at the private goal and then hands in a card; asked to
compile, it merges all cards into one addition. ``faults`` maps the number of a request (from 1) to
what goes wrong with it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trainer.canonical import fingerprint

Row = dict[str, Any]
Model = Callable[[Row], Row]
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
SENTENCE = "Check the price against the budget and open the details before you buy."


def call(name: str, arguments: Any, call_id: str = "c1") -> Row:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def says(*calls: Row, content: str = "", finish: str = "tool_calls", refusal: str = "") -> Row:
    message: Row = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = list(calls)
    if refusal:
        message["refusal"] = refusal
    return {"message": message, "finish_reason": finish}


def card(status: str = "PROPOSE_ADD", **deployable: Any) -> Row:
    """Arguments of a card that breaks no rule."""
    texts = {
        "failure_mechanism": "the price was never compared with the budget",
        "applicable_when": "the user has a budget",
        "observable_trigger": "a price is shown",
        "corrective_procedure": SENTENCE,
        "verification_step": "the price stays within the budget",
        "target_chunk_id": None,
        "proposed_content": SENTENCE,
    }
    audit = dict.fromkeys(
        (
            "failure_surface",
            "earliest_divergence",
            "oracle_comparison",
            "replay_evidence",
            "minimal_repair",
            "repair_validation_result",
        ),
        "seen in the trace",
    )
    return {
        "status": status,
        "privileged_audit": audit,
        "deployable_abstraction": {**texts, **deployable},
    }


def investigator(request: Row) -> Row:
    """Wins one trial with the gold in view, then hands in ``card()``."""
    opening = json.loads(request["messages"][1]["content"])
    gold = opening["privileged"]["gold"]
    state, won = opening["live_session"]["state"], False
    for message in request["messages"][2:]:
        if message["role"] == "assistant":
            continue
        told = json.loads(message["content"])
        state = told.get("state", state)
        won = won or told.get("trial_ended", {}).get("reward_detail", {}).get("r_success") == 1
    offered = {tool["function"]["name"] for tool in request["tools"]}
    if won or not offered & {"search", "click"}:
        return says(call("submit_failure_card", card()))
    return says(_towards(gold, state))


def _towards(gold: Mapping[str, Any], state: Mapping[str, Any]) -> Row:
    if state["page_type"] == "search_home":
        return call("search", {"query": gold["name"]})
    actions = state["actions"]
    if state["page_type"] == "search_results":
        value = gold["asin"] if gold["asin"] in actions else "next >"
        return call("click", {"value": value})
    for option in gold["goal_options"]:
        for action in actions:
            if action.endswith(f"={option}"):
                return call("click", {"value": action})
    return call("click", {"value": "buy now"})


def merger(request: Row) -> Row:
    """Merges all cards into one addition."""
    payload = json.loads(request["messages"][1]["content"])
    item = {
        "operation": "ADD",
        "target_chunk_id": None,
        "title": "Price and budget",
        "failure_mechanism": "the price was never compared with the budget",
        "applicable_when": "the user has a budget",
        "procedure": [SENTENCE],
        "verification": "the price stays within the budget",
        "common_failure": "buying at once",
        "evidence_card_ids": [card["card_id"] for card in payload["failure_cards"]],
    }
    return says(call("submit_candidates", {"candidates": [item], "evidence_only_card_ids": []}))


def model(request: Row) -> Row:
    """Investigates or compiles, whichever it is asked for."""
    names = {tool["function"]["name"] for tool in request["tools"]}
    return merger(request) if "submit_candidates" in names else investigator(request)


@dataclass
class FakeEndpoint:
    """``answered`` counts, by request body, how often a good answer went out whole."""

    model: Model = model
    faults: dict[int, str] = field(default_factory=dict)
    retry_after: str = "0"
    on_request: Callable[[int], None] = lambda number: None
    requests: list[Row] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    @contextmanager
    def running(self) -> Iterator[FakeEndpoint]:
        handler = type("Handler", (_Handler,), {"fake": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def arrive(self, body: Row) -> int:
        with self._lock:
            self.requests.append(body)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return len(self.requests)

    def leave(self) -> None:
        with self._lock:
            self._now -= 1


class _Handler(BaseHTTPRequestHandler):
    fake: FakeEndpoint
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = self.fake.arrive(body)
        try:
            self.fake.on_request(number)
            self._answer(body, self.fake.faults.get(number, ""))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.fake.leave()

    def _answer(self, body: Row, fault: str) -> None:
        if fault.isdecimal():
            self._error(int(fault))
            return
        if fault == "timeout":
            time.sleep(1.2)
            self.close_connection = True
            return
        spoken = {
            "two_tools": says(call("search", {"query": "a"}), call("search", {"query": "b"}, "c2")),
            "wrong_tool": says(call("delete_everything", {})),
            "bad_arguments": says(call("submit_failure_card", '{"status": "PROPOSE_ADD", "pri')),
            "refusal": says(refusal="I cannot help with that.", finish="stop"),
            "prose": says(content="Let me think.", finish="stop"),
            "cut_off": says(call("search", '{"que'), finish="length"),
            "no_choice": {},
        }.get(fault) or self.fake.model(body)
        if fault == "no_choice":
            spoken = {}
        if body.get("stream"):
            self._stream(body, spoken, fault)
        else:
            self._whole(body, spoken, fault)

    def _error(self, status: int) -> None:
        data = json.dumps({"error": {"message": f"fault {status}"}}).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", self.fake.retry_after)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _whole(self, body: Row, spoken: Row, fault: str) -> None:
        choices = [{"index": 0, **spoken}] if spoken else []
        data = json.dumps(
            {"id": "r", "object": "chat.completion", "created": 1, "model": "fake-1",
             "choices": choices, "usage": USAGE}
        ).encode()  # fmt: skip
        if fault == "truncated":
            data = data[: len(data) // 2]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        if spoken and fault != "truncated":
            self.fake.answered[fingerprint(body)] += 1

    def _stream(self, body: Row, spoken: Row, fault: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        pieces = list(_pieces(spoken))
        if fault == "truncated":
            pieces = pieces[: len(pieces) // 2]
        for piece in pieces:
            self._event(piece)
            if fault == "slow_stream":
                time.sleep(0.4)
        if fault in ("truncated", "slow_stream"):
            return
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()
        if spoken:
            self.fake.answered[fingerprint(body)] += 1

    def _event(self, value: Row) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()


def _pieces(spoken: Row) -> Iterator[Row]:
    base = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "fake-1"}

    def chunk(delta: Row, finish: str | None = None) -> Row:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    if spoken:
        message = spoken["message"]
        yield chunk({"role": "assistant", "content": ""})
        if message.get("content"):
            yield chunk({"content": message["content"]})
        if message.get("refusal"):
            yield chunk({"refusal": message["refusal"]})
        for index, tool in enumerate(message.get("tool_calls", ())):
            text = tool["function"]["arguments"]
            start = {"index": index, "id": tool["id"], "type": "function"}
            name = {"name": tool["function"]["name"], "arguments": ""}
            yield chunk({"tool_calls": [{**start, "function": name}]})
            for at in range(0, max(len(text), 1), max(1, len(text) // 3)):
                part = {"arguments": text[at : at + max(1, len(text) // 3)]}
                yield chunk({"tool_calls": [{"index": index, "function": part}]})
        yield chunk({}, spoken["finish_reason"])
    yield {**base, "choices": [], "usage": USAGE}
