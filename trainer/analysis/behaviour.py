"""What one episode did: the published behaviour metrics (gate-analysis.md §14.1), exact.

Works on a trace of either layout. An option refresh is no page visit, a protocol repair is a turn
but no action, and a missing token count blanks the per-turn value instead of shrinking its
denominator. Phases name the page *before* the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.rollout.traces import score

Json = Mapping[str, Any]
PHASES = ("search_home", "search_results", "product_detail", "other", "protocol_repair")
PAGES = frozenset(PHASES[:3])
BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
# What is described and paired, in the order of the published tables.
METRICS = (
    "model_steps", "actions", "valid_actions", "tokens_per_turn", "generated_tokens",
    "first_turn_tokens", "searches", "unique_queries", "query_chars", "product_opens",
    "unique_products", "product_revisits", "first_product_rank", "exposed_products", "backtracks",
    "pagination", "option_selections", "option_changes", "invalid_actions", "protocol_errors",
    "reasoning_chars_per_turn",
)  # fmt: skip

# Of which is told how many episodes have any.
SHARES = ("protocol_errors", "product_revisits", "option_changes", "backtracks")


@dataclass(slots=True)
class Behaviour:
    """One episode's numbers. ``outcome`` is success, failure or technical (not scored)."""

    task_id: int
    sample_id: int
    outcome: str
    reward: float | None
    termination: str
    values: dict[str, float | int | None]
    phases: dict[str, tuple[int, int]]
    labels: list[str] = field(default_factory=list)


def behaviour(trace: Json) -> Behaviour:
    """The metrics of a trace."""
    walk = _Walk(dict((trace.get("reset") or {}).get("observation_state") or {}))
    for step in trace["steps"]:
        walk.take(step)
    final = trace.get("final")
    reward = score(final) if trace.get("error") is None else None
    outcome = "technical" if reward is None else "success" if reward["r_success"] else "failure"
    return Behaviour(
        task_id=int(trace["job"]["task_id"]),
        sample_id=int(trace["job"]["sample_id"]),
        outcome=outcome,
        reward=None if reward is None else reward["reward"],
        termination=str((final or {}).get("termination_reason") or ""),
        values=walk.values(),
        phases={name: (walk.turns[name], walk.phase_tokens[name]) for name in PHASES},
        labels=walk.labels,
    )


class _Walk:
    """The episode so far: the state before the next action, and what was counted."""

    def __init__(self, state: Json) -> None:
        self.state = state
        self.count = dict.fromkeys(
            ("actions", "valid_actions", "invalid_actions", "protocol_errors", "searches",
             "product_opens", "product_revisits", "backtracks", "pagination",
             "option_selections", "option_changes", "query_chars"), 0)  # fmt: skip
        self.turns = dict.fromkeys(PHASES, 0)
        self.phase_tokens = dict.fromkeys(PHASES, 0)
        self.tokens: list[int | None] = []
        self.reasoning = 0
        self.queries: set[str] = set()
        self.opened: set[str] = set()
        self.exposed: set[str] = set(_listed(state))
        self.first_rank: int | None = None
        self.labels: list[str] = []

    def take(self, step: Json) -> None:
        model, environment = step.get("model") or {}, step.get("environment")
        repair = bool(step.get("protocol_error") or model.get("protocol_error"))
        page = self.state.get("page_type")
        phase = "protocol_repair" if repair else page if page in PAGES else "other"
        tokens = (model.get("usage") or {}).get("completion_tokens")
        self.tokens.append(tokens)
        self.turns[phase] += 1
        self.phase_tokens[phase] += tokens or 0
        self.reasoning += len(model.get("reasoning") or "")
        if repair:
            self.count["protocol_errors"] += 1
        self.labels.append(self._act(step.get("action"), environment, repair))
        if environment is not None:
            self.state = environment.get("observation_state") or {}
            self.exposed.update(_listed(self.state))

    def _act(self, action: str | None, environment: Json | None, repair: bool) -> str:
        if not action:
            return "repair" if repair else "no_action"
        self.count["actions"] += 1
        feedback = (environment or {}).get("action_feedback") or {}
        valid = feedback.get("valid")
        if valid is False:
            self.count["invalid_actions"] += 1
            return "invalid_action"
        if valid is True:
            self.count["valid_actions"] += 1
        after = (environment or {}).get("observation_state") or {}
        name, _, rest = action.partition("[")
        argument = rest.removesuffix("]")
        if name == "search":
            return self._search(argument)
        return self._click(argument, after) if name == "click" else "other"

    def _search(self, query: str) -> str:
        self.count["searches"] += 1
        self.count["query_chars"] += len(query)
        self.queries.add(" ".join(query.split()).casefold())
        return "search"

    def _click(self, value: str, after: Json) -> str:
        page = self.state.get("page_type")
        ranks = _listed(self.state)
        if page == "search_results" and value in ranks:
            if after.get("page_type") == "product_detail":
                return self._open(value, ranks[value])
            return "other"
        if value == BACK or (value in (PREVIOUS, NEXT) and page != "search_results"):
            self.count["backtracks"] += 1
            return "backtrack"
        if value in (PREVIOUS, NEXT):
            self.count["pagination"] += 1
            return "paginate"
        if value == BUY:
            return "purchase"
        return self._option(value)

    def _open(self, product: str, rank: int) -> str:
        self.count["product_opens"] += 1
        self.count["product_revisits"] += product in self.opened
        self.opened.add(product)
        if self.first_rank is None:
            self.first_rank = rank
        return "open_product"

    def _option(self, value: str) -> str:
        axis, sign, choice = value.partition("=")
        options: Mapping[str, Sequence[str]] = self.state.get("available_options") or {}
        if not sign or choice not in options.get(axis, ()):
            return "other"
        self.count["option_selections"] += 1
        had = (self.state.get("selected_options") or {}).get(axis)
        self.count["option_changes"] += had is not None and had != choice
        return "select_option"

    def values(self) -> dict[str, float | int | None]:
        turns = len(self.tokens)
        known = [count for count in self.tokens if count is not None]
        whole = bool(turns) and len(known) == turns
        return {
            "model_steps": turns,
            **self.count,
            "unique_queries": len(self.queries),
            "unique_products": len(self.opened),
            "exposed_products": len(self.exposed),
            "first_product_rank": self.first_rank,
            "generated_tokens": sum(known),
            "token_turns": len(known),
            "tokens_per_turn": sum(known) / turns if whole else None,
            "first_turn_tokens": self.tokens[0] if turns else None,
            "reasoning_chars_per_turn": self.reasoning / turns if turns else None,
        }


def _listed(state: Json) -> dict[str, int]:
    """Products of a result page and their ranks; empty for other pages."""
    if state.get("page_type") != "search_results":
        return {}
    products = state.get("products") or []
    first = state.get("rank_start") or 1
    return {
        str(product.get("asin")): int(product.get("rank") or first + place)
        for place, product in enumerate(products)
    }
