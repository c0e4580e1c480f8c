"""The cold start without a language model, for worlds of single words.

The success analyst knows what everybody knows: the request, the persona, the pages and the
purchase. It looks for moments in which a shopper did what a hasty one leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainer.analyst.rules.analyst import VERSION
from trainer.analyst.rules.goal import Goal
from trainer.analyst.rules.mechanisms import (
    BRAND_IN_QUERY,
    LEAVE_MISSING_OPTION,
    LEAVE_WRONG,
    REVEAL_HIDDEN,
    TURN_PAGE,
    WITHIN_BUDGET,
    Mechanism,
    wording_sha256,
)
from trainer.analyst.rules.reading import HIDDEN_LABEL
from trainer.analyst.rules.violations import Turn, turns_of
from trainer.shop.catalogue import Catalogue
from trainer.shop.navigation import ATTRIBUTES, NEXT, PREVIOUS
from trainer.shop.terms import category_nodes

Row = dict[str, Any]
#: the less often a deed occurs, the more a lesson from it says
RAREST_FIRST = (
    LEAVE_MISSING_OPTION.name,
    LEAVE_WRONG.name,
    WITHIN_BUDGET.name,
    REVEAL_HIDDEN.name,
    TURN_PAGE.name,
    BRAND_IN_QUERY.name,
)
STAGES = {
    BRAND_IN_QUERY.name: "search",
    TURN_PAGE.name: "results",
    "open_fitting": "results",
}


def public_goal(trace: Mapping[str, Any], catalogue: Catalogue) -> Goal:
    """What a reader can tell of the wishes: words of request and persona that the bought product
    answers to."""
    persona = {str(value).casefold() for value in trace["reset"]["user_persona"].values()}
    said = {*trace["reset"]["task_instruction"].casefold().split(), *persona}
    product = catalogue.products[trace["final"]["purchase"]["asin"]]
    title = product.title.casefold().split()
    owned = (*product.attributes, *product.hidden_attributes)
    rest = [a for a in owned if a.casefold() in said and a != product.brand]
    ceilings = [word.removeprefix("$") for word in persona if word.startswith("$")]
    return Goal(
        kind=category_nodes(product.category)[-1],
        brand=product.brand if product.brand.casefold() in said else None,
        visible=tuple(a for a in rest if a.casefold() in title),
        hidden=tuple(a for a in rest if a.casefold() not in title),
        options={
            axis: value
            for axis, values in product.options.items()
            for value in values
            if value.casefold() in said
        },
        ceiling=float(ceilings[0]) if ceilings and ceilings[0].isdecimal() else None,
    )


def deeds_of(turns: Sequence[Turn], goal: Goal) -> Iterator[str]:
    """Names of mechanisms that the shopper of a trace followed where it mattered."""
    for turn in turns:
        if turn.action is None:
            continue
        value, page = turn.action.argument, turn.state["page_type"]
        if turn.action.name == "search":
            if goal.brand and goal.brand.casefold() in value.casefold():
                yield BRAND_IN_QUERY.name
        elif page == "search_results":
            rows = turn.state["products"]
            if value == NEXT and not any(goal.fits_listing(row) for row in rows):
                yield TURN_PAGE.name
        elif page == "product_detail":
            yield from _deed_on_page(turn.state, value, goal)


def _deed_on_page(state: Mapping[str, Any], value: str, goal: Goal) -> Iterator[str]:
    if value == ATTRIBUTES and goal.unknown(state):
        yield REVEAL_HIDDEN.name
    elif value == PREVIOUS:
        if goal.lacking(state):
            yield LEAVE_MISSING_OPTION.name
        elif not goal.within_budget(state):
            yield WITHIN_BUDGET.name
        elif goal.wrong(state):
            yield LEAVE_WRONG.name
    else:
        axis, _, chosen = value.partition("=")
        if goal.options.get(axis) == chosen:
            yield f"select_option:{axis}"


class RuleBasedSuccessAnalyst:
    """Up to two lessons a trace, the rarest deeds first."""

    provenance = "rule_based"

    def __init__(self, catalogue: Catalogue, mechanisms: Mapping[str, Mechanism]) -> None:
        self._catalogue = catalogue
        self._mechanisms = mechanisms

    def identity(self) -> Mapping[str, Any]:
        wording = wording_sha256(self._mechanisms.values())
        return {"provider": VERSION, "channel": "success", "wording_sha256": wording}

    def lessons(self, trace: Mapping[str, Any]) -> tuple[list[Row], Row]:
        """The two rarest deeds; their confidence falls with how common such deeds are."""
        goal = public_goal(trace, self._catalogue)
        done = set(deeds_of(turns_of(trace), goal))
        order = [*RAREST_FIRST, *sorted(name for name in self._mechanisms if ":" in name)]
        found = [name for name in order if name in done][:2]
        return [self._lesson(name, order.index(name)) for name in found], {"calls": 0}

    def _lesson(self, name: str, rank: int) -> Row:
        mechanism = self._mechanisms[name]
        return {
            "mechanism": mechanism.name,
            "applicable_when": mechanism.applies,
            "observed_evidence": f"{mechanism.trigger}; the shopper acted on it and won",
            "decisive_behavior": mechanism.verify,
            "generalizable_lesson": mechanism.sentences(HIDDEN_LABEL)[0],
            "related_chunk_ids": [],
            "confidence": round(1 - rank / 10, 2),
        }


class RuleBasedClusterer:
    """Clusters by mechanism; compiles clusters of one mechanism into one chunk."""

    def __init__(self, mechanisms: Mapping[str, Mechanism]) -> None:
        self._mechanisms = mechanisms
        self._by_failure = {each.failure: each for each in mechanisms.values()}

    def cluster(self, channel: str, cards: Sequence[Row]) -> list[Row]:
        """The clusters of a batch, the largest first."""
        groups: dict[str, list[str]] = {}
        for card in cards:
            groups.setdefault(self._mechanism(channel, card).name, []).append(card["card_id"])
        ranked = sorted(groups, key=lambda name: (-len(groups[name]), name))
        return [self._cluster(self._mechanisms[name], sorted(groups[name])) for name in ranked]

    def _mechanism(self, channel: str, card: Row) -> Mechanism:
        if channel == "success":
            return self._mechanisms[card["mechanism"]]
        return self._by_failure[card["deployable_abstraction"]["failure_mechanism"]]

    @staticmethod
    def _cluster(mechanism: Mechanism, card_ids: Sequence[str]) -> Row:
        return {
            "workflow_stage": STAGES.get(mechanism.name, "product"),
            "mechanism": mechanism.name,
            "applicable_when": mechanism.applies,
            "procedure": [mechanism.sentences(HIDDEN_LABEL)[0]],
            "verification": mechanism.verify,
            "common_failure": mechanism.failure,
            "evidence_card_ids": list(card_ids),
        }

    def compile(self, clusters: Sequence[Row], most: int) -> Row:
        """One chunk a mechanism, those with most evidence first."""
        groups: dict[str, list[Row]] = {}
        for cluster in clusters:
            groups.setdefault(cluster["mechanism"], []).append(cluster)

        def support(name: str) -> tuple[int, str]:
            return -sum(len(each["evidence_card_ids"]) for each in groups[name]), name

        ranked = sorted(groups, key=support)
        chunks = [
            {
                **{k: v for k, v in groups[name][0].items() if k in CHUNK_PARTS},
                "title": name.replace("_", " ").replace(":", " ").capitalize(),
                "evidence_cluster_ids": sorted(each["cluster_id"] for each in groups[name]),
            }
            for name in ranked[:most]
        ]
        rest = [each["cluster_id"] for name in ranked[most:] for each in groups[name]]
        return {"chunks": chunks, "evidence_only_cluster_ids": sorted(rest)}


CHUNK_PARTS = (
    "workflow_stage",
    "applicable_when",
    "procedure",
    "verification",
    "common_failure",
)
