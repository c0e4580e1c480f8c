"""One shopping episode: the state machine of environment.md §2.1–2.4.

Every call of ``step`` counts against the limit, whatever the agent wrote, and no agent input
raises. Only the caller's own mistakes do: stepping an episode that is over, or before ``reset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from trainer.shop import observation
from trainer.shop.feedback import Reason, feedback
from trainer.shop.reward import score_nothing, score_purchase
from trainer.shop.tokens import normalise
from trainer.shop.types import Action, Observation, PageType, StepResult, Task, TerminationReason

if TYPE_CHECKING:
    from trainer.shop.world import ProductPage, World

BACK_TO_SEARCH = "back to search"
PREVIOUS = "< prev"
NEXT = "next >"
ATTRIBUTES = "attributes"
BUY = "buy now"


class EpisodeOver(RuntimeError):
    """The caller stepped or terminated an episode that is finished or was never reset."""


class ShopSession:
    """One episode of one task. Not shared between threads; the world may be."""

    def __init__(self, world: World, task_id: int, *, max_actions: int | None = None) -> None:
        """Raises InputError for a task that the world does not have."""
        self.world = world
        self.task: Task = world.task(task_id)
        self.max_actions = world.profile.max_actions if max_actions is None else max_actions
        self.done = True
        self._clear()

    def _clear(self) -> None:
        self.actions_taken = 0
        self.termination_reason: TerminationReason | None = None
        self._type: PageType = "search_home"
        self._query = ""
        self._results: tuple[str, ...] = ()
        self._page_number = 1
        self._page: ProductPage | None = None
        self._selected: dict[str, str] = {}
        self._attributes_shown = False
        self._seen: set[str] = set()
        self._last_action: dict[str, Any] | None = None

    @property
    def page_type(self) -> PageType:
        """The page the agent is on. ``terminal`` only after a purchase."""
        return self._type

    @property
    def selected(self) -> dict[str, str]:
        """The current selection, axis → value."""
        return dict(self._selected)

    def reset(self) -> Observation:
        """Begin anew on the home page."""
        self._clear()
        self.done = False
        return self._observe()

    def step(self, action: Action) -> StepResult:
        """Carry out one action, or say why not."""
        self._require_open()
        act = self._search if action.name == "search" else self._click
        return self._finish_step(str(action), act(action.argument))

    def reject(self, text: str, reason: Reason) -> StepResult:
        """Count an action that could not be read; the page stays what it was."""
        self._require_open()
        return self._finish_step(text, reason)

    def terminate(self, reason: Literal["action_limit", "generation_length"]) -> StepResult:
        """End without a purchase: zero score, the page stays what it was."""
        self._require_open()
        if reason not in ("action_limit", "generation_length"):
            raise ValueError(f"termination reason {reason!r} is not for callers")
        return self._end(reason, None)

    def _require_open(self) -> None:
        if self.done:
            raise EpisodeOver("the episode is over or was not reset; call reset() first")

    def _finish_step(self, text: str, reason: Reason) -> StepResult:
        self.actions_taken += 1
        missing = self._missing() if reason == "incomplete_options" else ()
        self._last_action = record = feedback(text, reason, missing)
        if self._type == "terminal":
            return self._purchase(record)
        if self.actions_taken >= self.max_actions:
            return self._end("action_limit", record)
        return StepResult(self._observe(), False, 0.0, record)

    # --- actions

    def _search(self, query: str) -> Reason:
        if not query.strip():
            return "empty_argument"
        if self._type != "search_home":
            return "search_unavailable"
        self._query = query
        self._results = self.world.search(query)
        self._page_number = 1
        self._leave_product("search_results")
        return "executed"

    def _click(self, value: str) -> Reason:
        if not value.strip():
            return "empty_argument"
        if self._type == "product_detail":
            return self._click_product(value)
        if self._type == "search_results":
            return self._click_results(value)
        return "unavailable_action"

    def _click_results(self, value: str) -> Reason:
        if value == BACK_TO_SEARCH:
            self._go_home()
        elif value == PREVIOUS and self._page_number > 1:
            self._page_number -= 1
        elif value == NEXT and self._page_number < self._pages():
            self._page_number += 1
        elif value in self._listed():
            self._page = self.world.page(value)
            self._selected = {}
            self._attributes_shown = False
            self._seen.add(value)
            self._type = "product_detail"
        else:
            return "unavailable_action"
        return "executed"

    def _click_product(self, value: str) -> Reason:
        page = self._product_page()
        choice = page.choices.get(value)
        if choice is not None:
            axis, option = choice
            if self._selected.get(axis) == option:
                return "already_selected"
            self._selected[axis] = option
        elif value == BACK_TO_SEARCH:
            self._go_home()
        elif value == PREVIOUS:
            self._leave_product("search_results")
        elif value == ATTRIBUTES and self._offers_attributes(page):
            self._attributes_shown = True
        elif value == BUY:
            if not self._may_buy():
                return "incomplete_options"
            self._type = "terminal"
        else:
            return "unavailable_action"
        return "executed"

    def _go_home(self) -> None:
        self._page_number = 1
        self._leave_product("search_home")

    def _leave_product(self, page_type: PageType) -> None:
        self._page = None
        self._selected = {}
        self._attributes_shown = False
        self._type = page_type

    # --- what the page offers

    def _product_page(self) -> ProductPage:
        if self._page is None:
            raise AssertionError("a product page without a product")
        return self._page

    def _missing(self) -> list[str]:
        return [axis for axis in self._product_page().product.options if axis not in self._selected]

    def _may_buy(self) -> bool:
        return not self.world.profile.purchase_needs_all_options or not self._missing()

    def _offers_attributes(self, page: ProductPage) -> bool:
        inline = self.world.profile.attributes_button == "inline"
        return inline and bool(page.product.hidden_attributes) and not self._attributes_shown

    def _pages(self) -> int:
        size = self.world.profile.page_size
        return max(1, -(-len(self._results) // size))

    def _listed(self) -> tuple[str, ...]:
        size = self.world.profile.page_size
        return self._results[(self._page_number - 1) * size : self._page_number * size]

    def actions(self) -> list[str]:
        """Clickable values of the page, in page order."""
        if self._type == "search_results":
            return self._results_actions()
        if self._type == "product_detail":
            return self._product_actions(self._product_page())
        return []

    def _results_actions(self) -> list[str]:
        actions = [BACK_TO_SEARCH]
        if self._page_number > 1:
            actions.append(PREVIOUS)
        if self._page_number < self._pages():
            actions.append(NEXT)
        actions += self._listed()
        return actions

    def _product_actions(self, page: ProductPage) -> list[str]:
        actions = [BACK_TO_SEARCH, PREVIOUS]
        if self._offers_attributes(page):
            actions.append(ATTRIBUTES)
        if self._may_buy():
            actions.append(BUY)
        selected = self._selected
        if not selected:
            return actions + list(page.choices)
        return actions + [
            label for label, (axis, option) in page.choices.items() if selected.get(axis) != option
        ]

    # --- observation and end

    def _observe(self) -> Observation:
        state = observation.base_state(
            self.world.profile, self._type, self.actions(), self._last_action
        )
        if self._type == "search_results":
            state.update(self._results_fields())
        elif self._type == "product_detail":
            state.update(self._detail_fields())
        return Observation(self.world.render(state), state)

    def _results_fields(self) -> dict[str, Any]:
        world = self.world
        products = [world.page(asin).summary for asin in self._listed()]
        if world.profile.marks_seen:
            products = [{**row, "seen": row["asin"] in self._seen} for row in products]
        return observation.results_fields(
            query=self._query,
            normalised=normalise(self._query),
            page=self._page_number,
            pages=self._pages(),
            total=len(self._results),
            first=(self._page_number - 1) * world.profile.page_size + 1,
            products=products,
        )

    def _detail_fields(self) -> dict[str, Any]:
        page = self._product_page()
        hidden = page.product.hidden_attributes if self._attributes_shown else None
        return observation.detail_fields(
            product=page.summary,
            options=page.shown_options,
            selected=self._selected,
            missing=self._missing(),
            price=page.prices.resolve(self._selected).price,
            hidden_attributes=hidden,
        )

    def _purchase(self, record: dict[str, Any]) -> StepResult:
        page = self._product_page()
        product = page.product
        first_values = {axis: values[0] for axis, values in product.options.items() if values}
        selected = {**first_values, **self._selected}
        resolution = page.prices.resolve(selected)
        world = self.world
        detail = score_purchase(
            world.profile,
            world.type_terms,
            product=product,
            selected=selected,
            task=self.task,
            resolution=resolution,
        )
        self.done, self.termination_reason = True, "purchase"
        return StepResult(
            observation=self._observe(),
            done=True,
            reward=float(detail[world.profile.primary_reward]),
            feedback=record,
            reward_detail=detail,
            purchase=world.purchase_record(product, selected, resolution),
            goal=world.goal_record(self.task),
            termination_reason="purchase",
        )

    def _end(
        self,
        reason: Literal["action_limit", "generation_length"],
        record: dict[str, Any] | None,
    ) -> StepResult:
        self.done, self.termination_reason = True, reason
        return StepResult(
            observation=self._observe(),
            done=True,
            reward=0.0,
            feedback=record,
            reward_detail=score_nothing(self.world.profile, reason),
            goal=self.world.goal_record(self.task),
            termination_reason=reason,
        )
