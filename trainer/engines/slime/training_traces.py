"""What a training trace says beyond an evaluation's, and traces of episodes that never began.

Token counts, log-probability statistics and weight versions come from the exact turns
(training.md §9.19). Everything else of a trace is written by the shared episode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.canonical import utc_now
from trainer.engines.slime.samples import Turn, token_record
from trainer.rollout import traces
from trainer.rollout.episode import TechnicalFailure
from trainer.rollout.records import failure_record, head_record
from trainer.rollout.types import EpisodeRequest, EpisodeResult


def failed_result(
    request: EpisodeRequest, provenance: Mapping[str, Any], error: Exception
) -> EpisodeResult:
    """An episode whose session could not be opened."""
    now = utc_now()
    category = error.category if isinstance(error, TechnicalFailure) else "environment"
    trace = head_record(request, provenance, ()) | {
        "status": "failed",
        "started_at": now,
        "ended_at": now,
        "duration_ms": 0.0,
        "error": failure_record("reset", error, category),
    }
    return EpisodeResult(request, trace, {}, False, None)


def unscored_result(
    result: EpisodeResult, *, stage: str, kind: str, message: str, category: str
) -> EpisodeResult:
    """A finished episode that cannot be used after all."""
    error = {"stage": stage, "type": kind, "message": message, "category": category}
    trace = {**result.trace, "status": "failed", "error": error}
    return replace(result, trace=trace, reward={}, scored=False)


def with_tokens(
    result: EpisodeResult, turns: Sequence[Turn], samples: Sequence[Any], *, exact: bool
) -> EpisodeResult:
    """The result with the ``tokens`` section of its trace.

    ``total`` counts what the trainer reads, prompts of every row included (without rows: what the
    engine read); ``sampled`` counts each sampled token once. ``exact`` adds ids, spans and
    log-probabilities.
    """
    if exact and samples:
        record = token_record(samples)
        section = {} if record is None else traces.token_summary(record, exact=True)
    else:
        section = _counts(turns, samples)
    versions = sorted({turn.weight_version for turn in turns if turn.weight_version})
    section["rows"] = len(samples)
    section["prompt_total"] = sum(len(turn.prompt_ids) for turn in turns)
    trace = {**result.trace, "tokens": section}
    if versions:
        trace["training"] = {**(trace.get("training") or {}), "weight_version": versions[-1]}
    return replace(result, trace=trace)


def _counts(turns: Sequence[Turn], samples: Sequence[Any]) -> dict[str, Any]:
    sampled = sum(len(turn.output_ids) for turn in turns)
    total_log_prob = math.fsum(value for turn in turns for value in turn.log_probs)
    read = sum(len(turn.prompt_ids) for turn in turns) + sampled
    return {
        "total": sum(len(sample.tokens) for sample in samples) if samples else read,
        "sampled": sampled,
        "log_prob_mean": total_log_prob / sampled if sampled else None,
        "log_prob_min": min((min(t.log_probs) for t in turns if t.log_probs), default=None),
    }
