"""A program that behaves like ``sglang.launch_server`` from outside: same flags, same endpoints.

Its answers depend on the served folder's weights, as real ones do, and on a GPU also on whether the
prompt was cached. ``FAKE_SGLANG`` in the environment makes it misbehave: ``dies``, ``never`` ready,
``deaf`` to TERM, ``other`` weights, ``busy`` for ever.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

chat: Callable[[Any], object] | None = None  # what a test's own model answers to a conversation


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model-path", "--served-model-name", "--host", "--tool-call-parser"):
        parser.add_argument(name)
    parser.add_argument("--port", type=int)
    args, _ = parser.parse_known_args(argv)
    mode = os.environ.get("FAKE_SGLANG", "")
    if mode == "dies":
        sys.exit("no GPU here")
    # Real servers have worker processes, which must end with them.
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if "FAKE_SGLANG_PIDS" in os.environ:
        Path(os.environ["FAKE_SGLANG_PIDS"]).write_text(f"{os.getpid()} {worker.pid}")
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "never":
        time.sleep(600)
    cached: set[str] = set()
    state = {"path": "/elsewhere" if mode == "other" else args.model_path}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                self.reply({"data": [{"id": args.served_model_name}]})
            elif self.path == "/get_model_info":
                self.reply({"model_path": state["path"]})
            else:
                self.reply({}, 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
            if self.path.startswith("/flush_cache"):
                cached.clear()
                self.reply({}, 400 if mode == "busy" else 200)
                return
            if self.path == "/update_weights_from_disk":
                state["path"] = body["model_path"]
                self.reply({"success": True})
                return
            if chat is not None and self.path == "/v1/chat/completions":
                self.reply(chat(body))
                return
            weights = (Path(state["path"]) / "model.safetensors").read_bytes()
            prompt = body["prompt"]
            text = hashlib.sha256(weights + prompt.encode()).hexdigest() + "'" * (prompt in cached)
            cached.add(prompt)
            self.reply({"choices": [{"text": text}]})

        def reply(self, value: object, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    ThreadingHTTPServer((args.host, args.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
