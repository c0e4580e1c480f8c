"""The values that cross the shop's border. The shop knows nothing of skills or models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PageType = Literal[
    "search_home", "search_results", "product_detail", "information_subpage", "terminal"
]
TerminationReason = Literal["purchase", "action_limit", "generation_length", "context_limit"]
REWARD_PARTS = ("r_type", "r_att", "r_option", "r_price", "r_loose", "r_strict", "r_success")


@dataclass(frozen=True, slots=True)
class Product:
    """One product, as every profile sees it (environment.md §1.3).

    ``options`` maps an axis to its values in page order; ``option_prices[axis][value]`` is the
    price of a variant or None. ``hidden_attributes`` show only once the attributes were asked for;
    they count in the score all the same. ``asin`` is twelve decimal digits.
    """

    asin: str
    title: str
    brand: str
    category: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    option_prices: Mapping[str, Mapping[str, float | None]]
    pricing: tuple[float, ...]
    hidden_attributes: tuple[str, ...] = ()
    bullets: tuple[str, ...] = ()
    description: str = ""
    product_category: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One shopping task and its private goal (environment.md §1.4).

    ``price_source`` says where the ceiling came from: ``stored``, the parser's rule, or empty.
    """

    task_id: int
    asin: str
    instruction: str
    instruction_simple: str
    persona: Mapping[str, Any]
    attributes: tuple[str, ...]
    goal_options: tuple[str, ...]
    price_upper: float | None
    category: str
    name: str
    task_uid: str = ""
    source_product_index: int | None = None
    price_source: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in the data that makes a product or task useless. ``code`` is for machines."""

    code: str
    record: int
    asin: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A structured action: ``search`` with a query or ``click`` with a value."""

    name: Literal["search", "click"]
    argument: str

    def __str__(self) -> str:
        return f"{self.name}[{self.argument}]"


@dataclass(frozen=True, slots=True)
class Observation:
    """What the agent sees: the text and the structured state it was rendered from."""

    text: str
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The answer to one action; ``reward_detail``, ``purchase``, ``goal`` are empty until done."""

    observation: Observation
    done: bool
    reward: float
    feedback: Mapping[str, Any] | None = None
    reward_detail: Mapping[str, Any] = field(default_factory=dict)
    purchase: Mapping[str, Any] = field(default_factory=dict)
    goal: Mapping[str, Any] = field(default_factory=dict)
    termination_reason: TerminationReason | None = None
