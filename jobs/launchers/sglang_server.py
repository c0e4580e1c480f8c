"""An SGLang server for a gate: started, known by its weights, and ended, as our own process group.

``serving.json`` beside the log says which export is served: the hash of its weights, what the
server says it loaded, and a probe (``sglang_http``). A checkpoint's name is only a label; these
bind it to what really answers. Specification: training.md §6.4.4, §9.27.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs import process
from jobs.launchers.sglang_http import ServerFailed, answers, model_path, probe
from trainer.canonical import utc_now
from trainer.engines.slime.checkpoints import mark_export
from trainer.files import read_json, write_json

READY_TIMEOUT_S = 600.0
GRACE_S = 10.0


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
            self._wait(log, should_stop)
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

    def _wait(self, log: Path, should_stop: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not (answers(self.spec.base_url) and self._listens()):  # another may be faster
            if how := self.ended():
                raise ServerFailed(f"{how}, before it was ready")
            if should_stop():
                raise ServerFailed("stopped before the server was ready")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"the server was not ready within {READY_TIMEOUT_S:.0f} s; see {log}"
                )
            time.sleep(0.25)

    def _listens(self) -> bool:
        return self._ref is not None and process.listens(self._ref, self.spec.port)

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

    def ended(self) -> str:
        """How our server ended by itself, and where its log is; empty while it lives."""
        exit_file = self.state.with_suffix(".exit")
        if not exit_file.is_file() and self._ref is not None and process.is_alive(self._ref):
            return ""
        found = process.exit_of(exit_file)
        how = "killed" if found is None else found.signal or f"exit code {found.code}"
        return f"the server ended ({how}); see {self.state.with_suffix('.log')}"

    def stop(self, grace_s: float = GRACE_S) -> None:
        """End our group and nothing else: ask, wait ``grace_s``, kill what is left."""
        ref = self._ref or remembered(self.state)
        if ref is not None:
            process.end_group(ref, grace_s)  # with requests in work it may not answer the TERM
        self._ref = None
        self.state.unlink(missing_ok=True)


def remembered(state: Path) -> process.ProcessRef | None:
    """The group a state file names."""
    if not state.is_file():
        return None
    record = read_json(state)
    return process.ProcessRef(record["pid"], record["pgid"], record["started"])
