"""Inspect with the episodes of ``benchmarks.episodes``: logs of 1,000 samples; its questions.

    PEERS_PYTHON -m benchmarks.peer_inspect TRACES.jsonl FOLDER

writes the logs and prints JSON, in an environment of its own with ``inspect-ai`` in it and nothing
of ours. The questions are the requests that its viewer makes (0.3.285, ``openRemoteLogFile``): it
keeps one log's directory, so a sample of that log is a range and one of another log four requests;
a log's samples are the same three and their summaries, beside which it reads the header at once.
It has no search in texts over logs; ``own`` is the time to read every log for a word.
"""

from __future__ import annotations

import itertools
import json
import struct
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

from benchmarks.peer_server import Line, Question

NEEDLE = "needle-1011"
LOG = 1000  # samples


def main() -> None:
    """Write and print."""
    traces, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    figures = write(traces, folder)
    logs = sorted(folder.glob("*.eval"))
    figures["disk_mb"] = sum(log.stat().st_size for log in logs) / 1e6
    print(json.dumps(figures | {"own": read_all(logs)}), flush=True)


def write(traces: Path, folder: Path) -> dict[str, Any]:
    """All episodes as samples; turns a second, objects included."""
    import inspect_ai
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalPlan,
        EvalResults,
        EvalSpec,
        EvalStats,
        write_eval_log,
    )  # fmt: skip

    turns, seconds = 0, 0.0
    with traces.open() as lines:
        for number in itertools.count():
            some = [json.loads(line) for line in itertools.islice(lines, LOG)]
            if not some:
                break
            begun = time.monotonic()
            moment = f"2026-11-29T{number // 60:02d}:{number % 60:02d}:00+00:00"
            dataset = EvalDataset(name="shop", samples=len(some))
            spec = EvalSpec(
                created=moment, task=f"round{number}", dataset=dataset, model="tiny/policy",
                config=EvalConfig(),
            )  # fmt: skip
            results = EvalResults(total_samples=len(some), completed_samples=len(some))
            log = EvalLog(
                status="success", eval=spec, plan=EvalPlan(), results=results, stats=EvalStats(),
                samples=[sample(trace) for trace in some],
            )  # fmt: skip
            name = moment[:19].replace(":", "-")
            write_eval_log(log, str(folder / f"{name}_round{number}_{number:022d}.eval"))
            seconds += time.monotonic() - begun
            turns += sum(len(trace["steps"]) for trace in some)
    return {"version": inspect_ai.__version__, "turns_per_s": turns / seconds}


def sample(trace: dict[str, Any]) -> Any:
    """An episode in Inspect's terms."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ModelOutput,
    )  # fmt: skip
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall

    wish = trace["reset"]["task_instruction"]
    messages: list[Any] = [ChatMessageSystem(content="You shop."), ChatMessageUser(content=wish)]
    for number, step in enumerate(trace["steps"]):
        call, key = step["model"]["tool_calls"][0], f"call_{number}"
        tool = ToolCall(id=key, function=call["name"], arguments=call["arguments"])
        messages.append(ChatMessageAssistant(content=step["model"]["content"], tool_calls=[tool]))
        page = step["environment"]["observation"]
        messages.append(ChatMessageTool(content=page, tool_call_id=key, function=call["name"]))
    final = trace["final"] or {}
    reward = final.get("reward", 0.0)
    return EvalSample(
        id=trace["episode_id"], epoch=1, input=wish, target="", messages=messages,
        output=ModelOutput.from_content("policy", trace["steps"][-1]["model"]["content"]),
        scores={"reward": Score(value=reward), "success": Score(value=float(reward == 1.0))},
        metadata={
            "arm": trace["provenance"]["skills"]["assignment"]["mode"],
            "end": final.get("termination_reason", "error"),
            "task": trace["job"]["task_id"],
        },
    )  # fmt: skip


def read_all(logs: list[Path]) -> float:
    """Milliseconds to find a word by reading every log."""
    from inspect_ai.log import read_eval_log

    begun = time.perf_counter()
    found = [
        sample.id
        for log in logs
        for sample in read_eval_log(str(log)).samples or []
        if any(NEEDLE in str(message.content) for message in sample.messages)
    ]
    assert found, NEEDLE
    return (time.perf_counter() - begun) * 1000


def command(python: str, folder: Path, port: int) -> list[str]:
    """Its viewer over a folder of logs."""
    view = [python, "-m", "inspect_ai", "view", "start", "--log-dir", str(folder)]
    return [*view, "--host", "127.0.0.1", "--port", str(port)]


class Log:
    """A log as the viewer opens it: its size, the end of the archive, the archive's directory."""

    def __init__(self, line: Line, name: str) -> None:
        self._line, self._name = line, urllib.parse.quote(name, safe="")
        self._size = int(json.loads(line.get(f"/api/log-info/{self._name}"))["size"])
        length, at = struct.unpack("<II", self._part(self._size - 22, 22)[12:20])
        self._entries: dict[str, tuple[int, int]] = {}  # where an entry begins, its bytes at least
        directory, place = self._part(at, length), 0
        while place < length:
            packed = struct.unpack_from("<I", directory, place + 20)[0]
            named, extra, note = struct.unpack_from("<HHH", directory, place + 28)
            start = struct.unpack_from("<I", directory, place + 42)[0]
            title = directory[place + 46 : place + 46 + named].decode()
            self._entries[title] = (start, 30 + named + packed)
            place += 46 + named + extra + note

    @property
    def samples(self) -> list[str]:
        """The names of its samples' entries."""
        return [title for title in self._entries if title.startswith("samples/")]

    def read(self, title: str) -> bytes:
        """An entry with its header, whose length the viewer guesses."""
        start, least = self._entries[title]
        return self._part(start, min(least + 256, self._size - start))

    def _part(self, start: int, size: int) -> bytes:
        path = f"/api/log-bytes/{self._name}?start={start}&end={start + size - 1}"
        part = self._line.get(path)
        assert len(part) == size, (path, len(part))
        return part


def questions(line: Line) -> dict[str, Question]:
    """A log's samples, one sample of a log and another of the same."""
    name = json.loads(line.get("/api/logs"))["files"][0]["name"]
    log = Log(line, name)
    middle = log.samples[len(log.samples) // 2]
    return {
        "list": lambda: Log(line, name).read("summaries.json"),
        "open": lambda: Log(line, name).read(middle),
        "open_next": lambda: log.read(middle),
    }


if __name__ == "__main__":
    main()
