"""Records of the result document about the rounds: skill versions, candidates, gates."""

from __future__ import annotations

from trainer.analysis.schema_values import Figure, Interval, Record


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
