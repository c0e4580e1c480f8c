"""Episode traces: ``shopsimrl-episode-v4`` in a slim layout.

One trace is one JSON object (environment.md §6.3). The published layout stores a page up to five
times; ours (``"layout": "slim-v1"``) stores each page text once, where the agent read it:

- ``conversation`` holds the prompt only, the messages before the first turn;
- a step's ``observation`` is the text the agent acted on; the text after its action is the next
  step's ``observation``, or ``final.observation``;
- a step's ``environment`` has no ``observation``, and ``tools`` is left out: it follows from the
  state.

``expand.py`` restores the published layout. Beyond it a trace has ``tokens`` (counts, statistics of
the log-probabilities, and on request the exact tokens, loss mask and log-probabilities), and in
training ``training`` (step, group, weights; training.md §9.19). The private goal appears in
``final`` only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import compress
from typing import Any

from trainer.rollout.policy import TokenRecord

SCHEMA = "shopsimrl-episode-v4"
LAYOUT = "slim-v1"
TIME_KEYS = frozenset(
    {
        "created_at",
        "started_at",
        "ended_at",
        "duration_ms",
        "duration_ms_mean",
        "latency_ms",
        "seconds",
    }
)
REWARD_TOLERANCE = 1e-12


def is_complete(trace: Mapping[str, Any]) -> bool:
    """Right schema, completed, and the shop said that the episode is over."""
    final = trace.get("final")
    return (
        trace.get("schema_version") == SCHEMA
        and trace.get("status") == "completed"
        and isinstance(final, Mapping)
        and final.get("done") is True
    )


def score(final: Mapping[str, Any] | None) -> dict[str, float] | None:
    """``reward`` and every numeric ``r_*`` of a final payload, or None when it cannot be scored.

    Scorable is defined by training.md §4.5: done, a numeric reward, finite parts, ``r_strict`` and
    ``r_success`` present, the latter 0 or 1.
    """
    if final is None or final.get("done") is not True:
        return None
    detail = final.get("reward_detail")
    if not _is_number(final.get("reward")) or not isinstance(detail, Mapping):
        return None
    reward = {"reward": _float(final["reward"])}
    for name, value in detail.items():
        if name.startswith("r_") and _is_number(value):
            reward[name] = _float(value)
    if not {"r_strict", "r_success"} <= reward.keys():
        return None
    if not all(math.isfinite(value) for value in reward.values()):
        return None
    return reward if reward["r_success"] in (0.0, 1.0) else None


def breaks_contract(reward: Mapping[str, float], primary: str) -> bool:
    """Whether the scalar reward differs from its primary part: a fault of the shop."""
    return abs(reward["reward"] - reward[primary]) > REWARD_TOLERANCE


def _float(value: float) -> float:
    """Infinity for a whole number that no float holds: JSON has no limit to its digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def token_summary(tokens: TokenRecord, *, exact: bool) -> dict[str, Any]:
    """Counts and log-probability statistics; with ``exact`` also everything ``token_record`` needs.

    ``sampled_spans`` are ``[start, end)`` pairs of positions whose loss mask is 1; ``log_probs``
    are those of the sampled tokens only, in order.
    """
    if not len(tokens.token_ids) == len(tokens.loss_mask) == len(tokens.log_probs):
        raise ValueError(
            f"{len(tokens.token_ids)} tokens, {len(tokens.loss_mask)} mask bits and "
            f"{len(tokens.log_probs)} log-probabilities"
        )
    sampled = list(compress(tokens.log_probs, tokens.loss_mask))
    summary: dict[str, Any] = {
        "total": len(tokens.token_ids),
        "sampled": len(sampled),
        "log_prob_mean": math.fsum(sampled) / len(sampled) if sampled else None,
        "log_prob_min": min(sampled) if sampled else None,
    }
    if exact:
        summary["token_ids"] = list(tokens.token_ids)
        summary["sampled_spans"] = _spans(bytes(tokens.loss_mask))
        summary["log_probs"] = sampled
    return summary


def token_record(trace: Mapping[str, Any]) -> TokenRecord | None:
    """The exact tokens stored in a trace, or None when it holds only their summary."""
    stored = trace.get("tokens")
    if not stored or "token_ids" not in stored:
        return None
    mask = [0] * len(stored["token_ids"])
    log_probs = [0.0] * len(mask)
    values = iter(stored["log_probs"])
    for start, end in stored["sampled_spans"]:
        for position in range(start, end):
            mask[position] = 1
            log_probs[position] = next(values)
    return TokenRecord(tuple(stored["token_ids"]), tuple(mask), tuple(log_probs))


def _spans(mask: bytes) -> list[list[int]]:
    """``[start, end)`` of every run of ones."""
    spans = []
    start = mask.find(1)
    while start >= 0:
        end = mask.find(0, start)
        end = len(mask) if end < 0 else end
        spans.append([start, end])
        start = mask.find(1, end)
    return spans


def without_times(value: Any) -> Any:
    """The value without timestamps, durations and latencies: what hashes and comparisons cover."""
    if isinstance(value, Mapping):
        return {key: without_times(item) for key, item in value.items() if key not in TIME_KEYS}
    if isinstance(value, list | tuple):
        return [without_times(item) for item in value]
    return value
