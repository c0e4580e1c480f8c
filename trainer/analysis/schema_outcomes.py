"""Records of the result document about what was played and trained: arms, cohorts, cases."""

from __future__ import annotations

from trainer.analysis.schema_values import Described, Difference, Figure, Interval, Record

# of a test: start and end, without and with the bank of that time
CONDITIONS = ("base_free", "base_s0", "final_free", "final_st")


class Arm(Record):
    """One condition of an evaluation: a checkpoint with or without a bank on a split.

    ``condition`` is one of CONDITIONS, or empty.
    """

    name: str
    condition: str
    split: str
    step: int | None
    bank: str
    figures: dict[str, Figure]
    source: str


class Contrast(Record):
    """Two arms on the same tasks. Transitions count tasks, a → b."""

    name: str
    split: str
    a: str
    b: str
    n: int
    convention: str
    differences: list[Difference]
    transitions: dict[str, int] | None
    mcnemar_exact: float | None
    mcnemar_mid_p: float | None
    newcombe: Interval | None
    source: str


class Test(Record):
    """The conditions of one split and their differences.

    ``internalisation_gap`` is full skill minus bare at the final checkpoint: what the text still
    adds to the weights. ``initial_gap`` is the same at the start.
    """

    split: str
    arms: list[Arm]
    contrasts: list[Contrast]
    initial_gap: Difference | None
    internalisation_gap: Difference | None


class UpdateSummary(Record):
    """One optimiser metric over the updates of a round: all, first or second of their step."""

    round: int
    part: str
    metric: str
    figures: Described
    zeros: int
    source: str


class Cohort(Record):
    """Episodes of one population and outcome (all, success, failure, technical).

    ``metrics`` describe per-episode values; ``shares`` are shares of n.
    """

    name: str
    split: str
    round: int | None
    outcome: str
    n: int
    tasks: int
    success_rate: float | None
    reward_mean: float | None
    metrics: dict[str, Described]
    pooled_tokens_per_turn: float | None
    token_complete: int
    token_basis: str
    shares: dict[str, float]
    terminations: dict[str, int]
    phases: dict[str, dict[str, float]]
    source: str


class BehaviourPair(Record):
    """Two cohorts on their common tasks: means of a task's episodes, paired."""

    name: str
    a: str
    b: str
    subset: str
    n: int
    metrics: list[Difference]


class CaseSide(Record):
    """One side of a case: what the episode did, step by step, in labels."""

    cohort: str
    success: bool | None
    reward: float | None
    turns: int
    tokens: int | None
    metrics: dict[str, float | int | None]
    actions: list[str]


class Case(Record):
    """One task chosen by a stated rule, in two cohorts."""

    rule: str
    task_id: int
    a: CaseSide
    b: CaseSide
    source: str
