"""An SGLang server for a gate: started, known by its weights, and ended, as our own process group.

``serving.json`` beside the log says which export is served: the hash of its weights, what the
server says it loaded, and a probe, the hash of its greedy answers to fixed prompts. A checkpoint's
name is only a label; these bind it to what really answers. Any OpenAI-compatible server can be
probed in place of one of ours. Specification: training.md §6.4.4, §9.27.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs import process
from trainer.canonical import fingerprint, utc_now
from trainer.engines.slime.checkpoints import mark_export
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.http_library import http

READY_TIMEOUT_S = 600.0
GRACE_S = 10.0
#: a server compiles kernels at its first requests, which takes minutes on a busy host
REQUEST_TIMEOUT_S = 600.0
PROBES = (
    "The capital of France is",
    "1, 2, 3, 5, 8, 13,",
    "购物任务：买一个红色的水杯。",
    "def add(a, b):\n    return",
)
PROBE_TOKENS = 16


class ServerFailed(RuntimeError):
    """The server did not start, or does not serve what it should."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What to serve and how; the defaults are those of the published gate."""

    export: Path
    served_name: str
    port: int = 30000
    host: str = "127.0.0.1"
    tp_size: int = 1
    dp_size: int = 1
    mem_fraction: float = 0.7
    tool_call_parser: str = "qwen3_coder"
    reasoning_parser: str | None = "qwen3"
    extra: tuple[str, ...] = ()
    python: str = sys.executable
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        """Where the server answers."""
        return f"http://{self.host}:{self.port}"

    def command(self) -> list[str]:
        """The command line of the server."""
        reasoning = ["--reasoning-parser", self.reasoning_parser] if self.reasoning_parser else []
        return [
            *(self.python, "-m", "sglang.launch_server"),
            *("--model-path", str(self.export), "--served-model-name", self.served_name),
            *("--host", self.host, "--port", str(self.port)),
            *("--tp-size", str(self.tp_size), "--dp-size", str(self.dp_size)),
            *("--mem-fraction-static", str(self.mem_fraction)),
            *("--tool-call-parser", self.tool_call_parser, *reasoning),
            *self.extra,
        ]


class SglangServer:
    """A server of ours. ``state`` remembers it, so that a second process can find or end it."""

    def __init__(self, spec: ServerSpec, state: Path) -> None:
        self.spec = spec
        self.state = state
        self._ref: process.ProcessRef | None = None

    def start(self, should_stop: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """Start it, wait until it answers, and record what it serves.

        Raises ServerFailed after ending what was begun. A server of the same state file that still
        runs is used again when it serves the same weights, else ended first.
        """
        weights = mark_export(self.spec.export)
        found = self._adopt(weights)
        if found is not None:
            return found
        if answers(self.spec.base_url):
            raise ServerFailed(
                f"{self.spec.base_url} is already answered by a server that is not ours: "
                "choose another port"
            )
        log = self.state.with_suffix(".log")
        exit_file = self.state.with_suffix(".exit")
        self._ref = process.start(
            self.spec.command(),
            cwd=Path.cwd(),
            log=log,
            exit_file=exit_file,
            register=self._remember,
            env={**os.environ, **self.spec.environ},
        )
        try:
            self._wait(exit_file, log, should_stop)
            return self._record(weights)
        except BaseException:
            self.stop()
            raise

    def _adopt(self, weights: str) -> dict[str, Any] | None:
        ref = remembered(self.state)
        if ref is None or not process.is_alive(ref):
            return None
        self._ref = ref
        known = self.state.with_name("serving.json")
        if known.is_file() and answers(self.spec.base_url):
            record: dict[str, Any] = read_json(known)
            if record["weights_sha256"] == weights and record["base_url"] == self.spec.base_url:
                return record
        self.stop()
        return None

    def _remember(self, ref: process.ProcessRef) -> None:
        write_json(self.state, {**asdict(ref), "base_url": self.spec.base_url})

    def _wait(self, exit_file: Path, log: Path, should_stop: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not answers(self.spec.base_url):
            ended = process.exit_of(exit_file)
            if ended is not None:
                how = ended.signal or f"exit code {ended.code}"
                raise ServerFailed(f"the server ended ({how}) before it was ready; see {log}")
            if should_stop():
                raise ServerFailed("stopped before the server was ready")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"the server was not ready within {READY_TIMEOUT_S:.0f} s; see {log}"
                )
            time.sleep(0.25)

    def _record(self, weights: str) -> dict[str, Any]:
        loaded = model_path(self.spec.base_url)
        if loaded is not None and Path(loaded).resolve() != self.spec.export.resolve():
            raise ServerFailed(f"the server serves {loaded}, not {self.spec.export}")
        record = {
            "created_at": utc_now(),
            "base_url": self.spec.base_url,
            "served_name": self.spec.served_name,
            "export": str(self.spec.export),
            "weights_sha256": weights,
            "loaded": loaded,
            "probe_sha256": probe(self.spec.base_url, self.spec.served_name),
        }
        write_json(self.state.with_name("serving.json"), record)
        return record

    def stop(self) -> None:
        """End our group and nothing else: ask, wait, kill what is left."""
        ref = self._ref or remembered(self.state)
        if ref is not None:
            end_group(ref)
        self._ref = None
        self.state.unlink(missing_ok=True)


def remembered(state: Path) -> process.ProcessRef | None:
    """The group a state file names."""
    if not state.is_file():
        return None
    record = read_json(state)
    return process.ProcessRef(record["pid"], record["pgid"], record["started"])


def end_group(ref: process.ProcessRef) -> None:
    """TERM, then KILL: a server with requests in work may not answer the first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not process.send(ref, number):
            break
        deadline = time.monotonic() + GRACE_S
        while process.is_alive(ref) and time.monotonic() < deadline:
            process.reap(ref)
            time.sleep(0.1)
    process.reap(ref)


def answers(base_url: str) -> bool:
    """Whether a server there knows its models."""
    try:
        reply = http().get(f"{base_url}/v1/models", timeout=2.0)
    except http().HTTPError:
        return False
    return bool(reply.status_code == 200)


def model_path(base_url: str) -> str | None:
    """What an SGLang server says it loaded; None from a server of another kind.

    Raises ServerFailed when it does not answer at all.
    """
    for path in ("/model_info", "/get_model_info"):  # the second is the older name
        reply = _ask("GET", base_url + path)
        if reply.status_code == 200:
            value = reply.json().get("model_path")
            return None if value is None else str(value)
    return None


def probe(base_url: str, model: str, prompts: Sequence[str] = PROBES) -> str:
    """Hash of a server's greedy answers to fixed prompts: equal for equal weights and precision.

    Raises ServerFailed when the server does not answer them.
    """
    said = []
    for prompt in prompts:
        body = {
            "model": model,
            "prompt": prompt,
            "temperature": 0.0,
            "max_tokens": PROBE_TOKENS,
        }
        reply = _ask("POST", f"{base_url}/v1/completions", json=body)
        if reply.status_code != 200:
            raise ServerFailed(f"the probe got HTTP {reply.status_code}: {reply.text[:200]}")
        said.append([prompt, reply.json()["choices"][0]["text"]])
    return fingerprint(said)


def _ask(method: str, url: str, **request: Any) -> Any:
    """The server's reply, whatever its status. Raises ServerFailed when none comes."""
    try:
        return http().request(method, url, timeout=REQUEST_TIMEOUT_S, **request)
    except http().HTTPError as error:
        raise ServerFailed(f"{url} did not answer: {type(error).__name__} {error}") from error


def check_serving(record: Mapping[str, Any]) -> None:
    """Raise ServerFailed when a server no longer is what its record says."""
    loaded = model_path(record["base_url"])
    if loaded != record["loaded"]:
        raise ServerFailed(f"the server now serves {loaded}, not {record['loaded']}")
    found = probe(record["base_url"], record["served_name"])
    if found != record["probe_sha256"]:
        raise ServerFailed(
            f"the server's answers changed: probe {found[:12]}, recorded "
            f"{record['probe_sha256'][:12]}"
        )


def update_weights(base_url: str, export: Path) -> str:
    """Let a running SGLang server load another export; returns the export's hash.

    Raises ServerFailed when it does not answer and InputError when it refuses.
    """
    weights = mark_export(export)
    url = f"{base_url}/update_weights_from_disk"
    reply = _ask("POST", url, json={"model_path": str(export)})
    if reply.status_code != 200 or reply.json().get("success") is not True:
        raise InputError(
            f"the server did not take the weights: HTTP {reply.status_code} {reply.text[:200]}",
            file=export,
        )
    return weights
