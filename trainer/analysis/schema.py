"""The result document. Each number carries how many observations stand behind it (``n``), what
they are (``of``) and the file it was computed from (``source``, relative to the run's folder).

Names follow the published analysis where it has the same thing (gate-analysis.md §14).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

SCHEMA = "intraskill-analysis-v1"
Interval = tuple[float, float]


class Record(BaseModel):
    """Base of all parts: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Figure(Record):
    """One number: ``n`` counts ``of``; both are None where the source does not say."""

    value: float | int | None
    n: int | None
    of: str
    source: str


class Chunk(Record):
    """A chunk of a bank with its measured effect and the rate it trains with."""

    skill_id: str
    title: str
    content: str
    version: str
    effect: float | None = None
    rank: int | None = None
    rho: float | None = None


class Bank(Record):
    """One skill version: S0 is the start, S1 what the first gate selected.

    Without ``complete`` only the ids are known, from the table of contributions.
    """

    label: str
    number: int
    step: int | None
    bank_sha256: str
    complete: bool
    chunks: list[Chunk]
    source: str


class Candidate(Record):
    """A proposal; of its evidence cards only the number is kept."""

    round: int
    candidate_id: str
    operation: str
    target_chunk_id: str
    title: str
    content: str
    cards: int
    status: str
    effect: float | None
    rank: int | None
    source: str


class Coefficient(Record):
    """What showing one version adds to the reward; n counts masked rollouts."""

    round: int
    intervention_id: str
    kind: str
    logical_chunk_id: str
    operation: str
    order: int
    title: str
    coefficient: float
    rank: int | None
    status: str
    se: float | None
    low: float | None
    high: float | None
    with_n: int | None
    without_n: int | None
    n: int | None
    components: dict[str, float]
    source: str


class Difference(Record):
    """Arm b minus arm a in one metric, task by task."""

    metric: str
    n: int
    of: str
    a: float
    b: float
    difference: float
    interval: Interval | None
    bca_interval: Interval | None = None
    sd: float | None = None
    detectable: float | None = None
    p: float | None = None
    p_holm: float | None = None
    source: str


class Gate(Record):
    """One round's gate."""

    round: int
    profile: str
    status: str
    n: int | None
    columns: int
    bare: dict[str, Figure]
    masked: dict[str, Figure]
    delta: Figure
    delta_interval: Interval | None
    behaviour: dict[str, Figure]
    pool_sha256: str
    assignment_sha256: str
    selected_bank_sha256: str
    rebuilt_assignment_sha256: str
    refit_max_error: float | None
    stated_refit_max_error: float | None
    condition_number: float | None
    source: str


class Round(Record):
    """One round: its curriculum, what training generated, and the funnel from failure to chunk."""

    round: int
    step: int
    q: float | None
    state_id: str
    rho: dict[str, float]
    input_chunks: int | None
    selected_chunks: int | None
    funnel: dict[str, Figure]
    source: str


class Arm(Record):
    """One condition of an evaluation: a checkpoint with or without a bank on a split.

    ``condition`` is base_free, base_s0, final_free, final_st, or empty.
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


class Table(Record):
    """A table of numbers; empty cells are None."""

    columns: list[str]
    rows: list[list[float | int | str | None]]
    source: str


class Described(Record):
    """A distribution in four numbers."""

    n: int
    mean: float
    median: float
    p90: float | None = None
    least: float | None = None
    most: float | None = None


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


class Analysis(Record):
    """The whole document. ``missing`` says in words what the folder could not give."""

    schema_version: str
    name: str
    kind: str
    seed: int | None
    rounds: list[Round]
    gates: list[Gate]
    coefficients: list[Coefficient]
    banks: list[Bank]
    candidates: list[Candidate]
    tests: list[Test]
    recorded: list[Contrast]
    ranking: list[Arm]
    ranking_contrasts: list[Contrast]
    training: Table
    updates: Table
    update_summaries: list[UpdateSummary]
    cohorts: list[Cohort]
    pairs: list[BehaviourPair]
    cases: list[Case]
    facts: dict[str, Figure]
    settings: dict[str, Any]
    sources: dict[str, str]
    missing: list[str]
