"""Questions to a running SGLang server: what it serves, a probe of its answers, other weights.

A probe is the hash of greedy answers to fixed prompts. Any OpenAI-compatible server can be probed
in place of one of ours. Specification: training.md §6.4.4, §9.27.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.engines.slime.checkpoints import mark_export
from trainer.errors import InputError
from trainer.http_library import http

#: a server compiles kernels at its first requests, which takes minutes on a busy host
REQUEST_TIMEOUT_S = 600.0
FLUSH_TIMEOUT_S = 30.0
PROBES = (
    "The capital of France is",
    "1, 2, 3, 5, 8, 13,",
    "购物任务：买一个红色的水杯。",
    "def add(a, b):\n    return",
)
PROBE_TOKENS = 16


class ServerFailed(RuntimeError):
    """The server did not start, or does not serve what it should."""


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

    Each prompt is computed anew: what a GPU makes of a cached one differs in its last bits, which
    can turn a greedy answer. Raises ServerFailed when the server does not answer them.
    """
    said = []
    for prompt in prompts:
        _forget_prompts(base_url)
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


def _forget_prompts(base_url: str) -> None:
    """Empty the prefix cache of an SGLang server, once it has no requests in work; other servers
    have no such address. Raises ServerFailed when it stays busy."""
    reply = _ask("POST", f"{base_url}/flush_cache?timeout={FLUSH_TIMEOUT_S:.0f}")
    if reply.status_code == 400:
        raise ServerFailed(f"the server's cache could not be emptied: {reply.text[:200]}")


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
