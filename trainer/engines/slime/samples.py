"""slime's training rows of one episode: built from exact turns, and read back into outcomes.

Every row carries its loss mask (1 on sampled tokens only), the log-probabilities of sampled tokens
(0.0 elsewhere), the episode's reward and the episode's ``rollout_id``, so that an episode counts
once however many rows it has. Works with every slime ``Sample`` since 0.2.4: what a version lacks
is set as a plain attribute. Specification: training.md §4.5, §4.6, §8.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.rollout.policy import TokenRecord

ZERO_REWARD: Mapping[str, float] = {"reward": 0.0, "r_strict": 0.0, "r_success": 0.0}


@dataclass(frozen=True, slots=True)
class Turn:
    """One sampled turn: the prompt it was sampled from and exactly what was drawn."""

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish_reason: str
    weight_version: str | None = None
    cached_tokens: int = 0


@dataclass(slots=True)
class Row:
    """One training row while it grows.

    ``loss_mask`` and ``log_probs`` cover the response only: everything after the first prompt.
    """

    prompt_length: int
    token_ids: list[int] = field(default_factory=list)
    loss_mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @classmethod
    def begin(cls, turn: Turn) -> Row:
        """The row that a turn opens."""
        row = cls(len(turn.prompt_ids), list(turn.prompt_ids))
        row._sampled(turn)
        return row

    def extends(self, turn: Turn) -> bool:
        """Whether the turn's prompt begins with exactly the tokens held here."""
        held = len(self.token_ids)
        return len(turn.prompt_ids) >= held and list(turn.prompt_ids[:held]) == self.token_ids

    def append(self, turn: Turn) -> None:
        """Take in the new part of the prompt, untrained, and what was sampled, trained."""
        fresh = turn.prompt_ids[len(self.token_ids) :]
        self.token_ids += fresh
        self.loss_mask += [0] * len(fresh)
        self.log_probs += [0.0] * len(fresh)
        self._sampled(turn)

    def _sampled(self, turn: Turn) -> None:
        self.token_ids += turn.output_ids
        self.loss_mask += [1] * len(turn.output_ids)
        self.log_probs += turn.log_probs
        self.turns.append(turn)

    def cut(self, limit: int) -> None:
        """Keep at most ``limit`` tokens; 0 keeps all."""
        if limit and len(self.token_ids) > limit:
            response = max(0, limit - self.prompt_length)
            del self.token_ids[limit:], self.loss_mask[response:], self.log_probs[response:]

    @property
    def trained(self) -> bool:
        """Whether any sampled token is left."""
        return any(self.loss_mask)


def rows_of(turns: Sequence[Turn], *, contiguous: bool, max_tokens: int) -> list[Row]:
    """Training rows of an episode: one per turn, or one per unbroken token sequence.

    Each sampled token is in exactly one row. Rows without any sampled token are left out.
    """
    rows: list[Row] = []
    for turn in turns:
        if contiguous and rows and rows[-1].extends(turn):
            rows[-1].append(turn)
        else:
            rows.append(Row.begin(turn))
    for row in rows:
        row.cut(max_tokens)
    return [row for row in rows if row.trained]


def sample_of_row(row: Row, base: Any, response: str) -> Any:
    """A slime ``Sample`` for a row, which must not change any more.

    ``base`` is the Sample that slime asked to fill.
    """
    sample = type(base)(
        group_index=base.group_index,
        index=base.index,
        prompt=base.prompt,
        label=base.label,
        tokens=row.token_ids,
        response=response,
        response_length=len(row.loss_mask),
        loss_mask=row.loss_mask,
        rollout_log_probs=row.log_probs,
        session_id=base.session_id,
        weight_versions=sorted({t.weight_version for t in row.turns if t.weight_version}),
    )
    for turn in row.turns:
        sample.prefix_cache_info.add(
            {"cached_tokens": turn.cached_tokens, "prompt_tokens": len(turn.prompt_ids)}
        )
    return sample


def finish_samples(
    samples: Sequence[Any],
    base: Any,
    *,
    reward: Mapping[str, float],
    truncated: bool,
    metadata: Mapping[str, Any],
) -> None:
    """Give all rows of a scored episode its reward, identity and status."""
    status = type(base).Status
    for sample in samples:
        sample.rollout_id = base.index
        sample.group_index = base.group_index
        sample.reward = dict(reward)
        sample.status = status.TRUNCATED if truncated else status.COMPLETED
        sample.metadata = {**sample.metadata, **metadata}


def placeholder(base: Any, *, reason: str, category: str, metadata: Mapping[str, Any]) -> Any:
    """The base Sample as an unscored row that trains nothing; ``category`` says whose fault."""
    base.tokens = [0, 0]
    base.response = ""
    base.response_length = 1
    base.loss_mask = [0]
    base.rollout_log_probs = [0.0]
    base.reward = dict(ZERO_REWARD)
    base.remove_sample = True
    base.status = type(base).Status.ABORTED
    base.rollout_id = base.index
    base.metadata = {
        **base.metadata,
        **metadata,
        "shopsim_abort_reason": reason,
        "shopsim_failure": category,
        "shopsim_scored": False,
    }
    return base


def token_record(samples: Sequence[Any]) -> TokenRecord | None:
    """All tokens the trainer reads for an episode, rows one after another; None without rows."""
    if not samples:
        return None
    ids: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    for sample in samples:
        before = len(sample.tokens) - sample.response_length
        ids += sample.tokens
        mask += [0] * before + list(sample.loss_mask)
        log_probs += [0.0] * before + list(sample.rollout_log_probs)
    return TokenRecord(tuple(ids), tuple(mask), tuple(log_probs))


def leaves(node: Any) -> list[Any]:
    """All Samples of slime's nested lists, in order."""
    if isinstance(node, list | tuple):
        return [leaf for item in node for leaf in leaves(item)]
    return [node]


def rollout_key(sample: Any) -> int:
    """What identifies the episode of a row: ``rollout_id``, else the index."""
    rollout_id = getattr(sample, "rollout_id", None)
    return int(sample.index if rollout_id is None else rollout_id)
