"""The shop's profiles: data and settings of one state machine, never a second code path.

A profile names every identifier that decides what an episode means (environment.md §0). The
identifiers enter traces, manifests and health replies; runs of different profiles are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from trainer.errors import InputError
from trainer.shop.types import TerminationReason

#: Column weights in the order of the search index (environment.md §3.1).
PUBLISHED_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "title": 3.0,
        "brand": 2.0,
        "category": 2.0,
        "model": 2.5,
        "attributes": 1.5,
        "options": 1.2,
        "bullets": 0.8,
    }
)


#: Titles decide, the category counts twice; materials, colours and sizes are not searchable.
MINI_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {**dict.fromkeys(PUBLISHED_WEIGHTS, 0.0), "title": 1.0, "category": 1.0}
)


@dataclass(frozen=True, slots=True)
class ShopProfile:
    """Settings of the shop. Two equal profiles over one catalogue give equal episodes."""

    name: str
    environment_version: str
    observation_version: str
    tool_version: str
    search_version: str
    reward_version: str
    variant_price_version: str
    budget_parser: str
    #: how title terms are found for ``r_type``; see ``terms.py``
    type_terms: str
    primary_reward: Literal["r_strict", "r_loose"] = "r_strict"
    renderer: Literal["published", "budgeted"] = "published"
    page_size: int = 20
    top_k: int = 150
    field_weights: Mapping[str, float] = field(default_factory=lambda: PUBLISHED_WEIGHTS)
    max_actions: int = 30
    max_actions_multi_turn: int = 40
    #: False: axes left open take their first value when the product is bought
    purchase_needs_all_options: bool = True
    #: ``inline``: a product page with hidden attributes offers ``attributes``, which shows them
    attributes_button: Literal["off", "inline"] = "off"
    #: n > 0: one query in n has a first page of paid places; 0: none
    sponsored_every: int = 0
    #: results pages say which products were opened before
    marks_seen: bool = False
    #: why a caller may end an episode; all of them score zero
    caller_terminations: tuple[TerminationReason, ...] = (
        "action_limit",
        "generation_length",
        "context_limit",
    )
    #: the service sends the persona even to those who did not ask for it
    sends_persona_unasked: bool = False
    #: goals say which rule of the budget parser decided
    reports_budget_rule: bool = True
    #: rewards carry ``exact_option_match`` beside the fuzzy score
    strict_option_diagnostics: bool = False
    #: with more clickable values than this, the click schema names none; None: it names all
    listed_actions: int | None = None
    values_shown_per_axis: int = 100
    key_attributes_shown: int = 10

    def identity(self) -> dict[str, Any]:
        """What identifies the environment in manifests and traces."""
        return {
            "profile": self.name,
            "environment_version": self.environment_version,
            "observation_version": self.observation_version,
            "tool_version": self.tool_version,
            "search_version": self.search_version,
            "reward_version": self.reward_version,
            "variant_price_version": self.variant_price_version,
            "budget_parser_version": self.budget_parser,
            "type_terms": self.type_terms,
            "primary_reward": self.primary_reward,
            "page_size": self.page_size,
            "top_k": self.top_k,
            "field_weights": dict(self.field_weights),
            "max_actions": self.max_actions,
        }


MINI = ShopProfile(
    name="mini",
    environment_version="intraskill-mini-v1",
    observation_version="intraskill-mini-words-v1",
    tool_version="intraskill-mini-tools-v1",
    search_version="multifield-bm25-sponsored-v1",
    reward_version="category-gated-reward-v1",
    variant_price_version="variant-price-paper-v2",
    budget_parser="none",
    type_terms="category-leaf",
    field_weights=MINI_WEIGHTS,
    page_size=3,
    top_k=9,
    max_actions=11,
    max_actions_multi_turn=11,
    purchase_needs_all_options=False,
    attributes_button="inline",
    sponsored_every=3,
    marks_seen=True,
)

STANDARD = ShopProfile(
    name="standard",
    environment_version="intraskill-shop-v1",
    observation_version="intraskill-observation-v1",
    tool_version="intraskill-tools-v1",
    search_version="multifield-bm25-v1",
    reward_version="intraskill-reward-v1",
    variant_price_version="variant-price-paper-v2",
    budget_parser="clause-budget-v1",
    type_terms="han-bigram-latin-number-v1",
    renderer="budgeted",
    listed_actions=64,
    strict_option_diagnostics=True,
)

#: The published environment, bit for bit where it is sound (environment.md §2–5).
COMPAT = ShopProfile(
    name="compat",
    environment_version="shopsimulator-paper-aligned-v8",
    observation_version="shopping-observation-v7",
    tool_version="shopping-tools-paper-v4",
    search_version="shopsimulator-multifield-bm25-v3",
    reward_version="shopsimulator-paper-reward-v2",
    variant_price_version="variant-price-paper-v2",
    budget_parser="instruction-budget-v1",
    type_terms="han-bigram-latin-number-v1",
    caller_terminations=("action_limit", "generation_length"),
    sends_persona_unasked=True,
    reports_budget_rule=False,
)

PROFILES: Mapping[str, ShopProfile] = MappingProxyType(
    {p.name: p for p in (MINI, STANDARD, COMPAT)}
)


def profile_named(name: str) -> ShopProfile:
    """The profile called ``name``. Raises InputError that lists the known names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InputError(
            "unknown shop profile",
            field="profile",
            value=name,
            remedy=f"Known profiles: {', '.join(sorted(PROFILES))}",
        ) from None
