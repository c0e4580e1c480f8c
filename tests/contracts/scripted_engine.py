"""A model server that says what a script tells it, with tokens and log-probabilities of its own.

It speaks ``/generate`` as SGLang does. A script is a function ``(session id, turn) -> reply``,
where a reply is a text, or a dictionary that overrides parts of the answer (``finish``,
``log_probs``, ``status``, ``raw``). It runs in this process behind real HTTP.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.contracts.toy_tokenizer import ToyTokenizer

Script = Callable[[str, int], Any]
ROUTING_HEADER = "X-SMG-Routing-Key"


def log_prob_of(session: str, turn: int, position: int) -> float:
    """A number that tells where a token was sampled."""
    return -(1 + sum(map(ord, session)) % 97 + turn / 64 + position / 8192) / 128


class ScriptedEngine:
    """Counts turns per session and remembers every request."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.tokenizer = ToyTokenizer()
        self.turns: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.aborted_rids: list[str] = []
        self.weight_version = "7"
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def reply(self, session: str, request: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and body for one ``/generate`` request."""
        with self._lock:
            self.turns[session] += 1
            turn = self.turns[session]
            self.requests.append({"session": session, **request})
        return self.answer(session, turn, request)

    def answer(self, session: str, turn: int, request: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and body of a session's ``turn``, as often as it is asked for."""
        said = self.script(session, turn)
        options = said if isinstance(said, dict) else {"text": said}
        if "raw" in options:
            return options.get("status", 200), options["raw"]
        if options.get("status", 200) >= 400:
            return options["status"], {"error": "no"}
        finish = options.get("finish", "stop")
        ids = self.tokenizer.encode(options.get("text", ""))
        if finish == "stop":
            ids.append(self.tokenizer.eos_token_id)
        limit = request["sampling_params"]["max_new_tokens"]
        if len(ids) > limit:
            ids, finish = ids[:limit], "length"
        log_probs = options.get("log_probs") or [
            log_prob_of(session, turn, position) for position in range(len(ids))
        ]
        return 200, {
            "text": self.tokenizer.decode(ids),
            "meta_info": {
                "output_token_logprobs": [
                    [value, token, None] for value, token in zip(log_probs, ids, strict=False)
                ],
                "finish_reason": {"type": finish},
                "weight_version": self.weight_version,
                "cached_tokens": 3,
                "prompt_tokens": len(request["input_ids"]),
            },
        }

    def serve(self) -> tuple[str, int]:
        """Start answering over HTTP; returns host and port."""
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/generate":
                    status, data = engine.reply(self.headers.get(ROUTING_HEADER, ""), body)
                else:
                    engine.aborted_rids.append(body.get("rid", "all"))
                    status, data = 200, {}
                self._answer(status, data)

            def do_GET(self) -> None:
                self._answer(200, {"workers": []})

            def _answer(self, status: int, data: Any) -> None:
                text = data if isinstance(data, str) else json.dumps(data)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        serve = partial(self._server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
