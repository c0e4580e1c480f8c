"""Where the agent is and what it may do there: pages, clicks and selection (environment.md
§2.1–2.3).

Knows neither task nor score. An action changes the page or it is refused with a reason; nothing
else can happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.shop import observation
from trainer.shop.feedback import Reason
from trainer.shop.tokens import normalise
from trainer.shop.types import PageType

if TYPE_CHECKING:
    from trainer.shop.pages import ProductPage
    from trainer.shop.world import World

BACK_TO_SEARCH = "back to search"
PREVIOUS = "< prev"
NEXT = "next >"
ATTRIBUTES = "attributes"
BUY = "buy now"


class Navigation:
    """The agent's place in the shop, from the home page to the terminal page."""

    def __init__(self, world: World) -> None:
        self.type: PageType = "search_home"
        self.selected: dict[str, str] = {}
        self._world = world
        self._profile = world.profile
        self._query = self._normalised = ""
        self._results: tuple[str, ...] = ()
        self._number = 1
        self._page: ProductPage | None = None
        self._attributes_shown = False
        self._seen: set[str] = set()
        #: result pages of this search, by number and what was seen; they are turned to and fro
        self._result_pages: dict[tuple[int, int], dict[str, Any]] = {}

    @property
    def page(self) -> ProductPage:
        """The product the agent looks at. Only on a product page, and after the purchase."""
        if self._page is None:
            raise AssertionError(f"no product on page {self.type}")
        return self._page

    # --- actions

    def search(self, query: str) -> Reason:
        """Search; possible on the home page only."""
        if not query.strip():
            return "empty_argument"
        if self.type != "search_home":
            return "search_unavailable"
        self._query = query
        self._normalised = normalise(query)
        self._results = self._world.search(query)
        self._number = 1
        self._result_pages = {}
        self._leave_product("search_results")
        return "executed"

    def click(self, value: str) -> Reason:
        """Click a value of the page; case and blanks count."""
        if not value.strip():
            return "empty_argument"
        if self.type == "product_detail":
            return self._click_product(value)
        if self.type == "search_results":
            return self._click_results(value)
        return "unavailable_action"

    def _click_results(self, value: str) -> Reason:
        if value == BACK_TO_SEARCH:
            self._go_home()
        elif value == PREVIOUS and self._number > 1:
            self._number -= 1
        elif value == NEXT and self._number < self._pages():
            self._number += 1
        elif value in self._listed():
            self._page = self._world.page(value)
            self.selected = {}
            self._attributes_shown = False
            self._seen.add(value)
            self.type = "product_detail"
        else:
            return "unavailable_action"
        return "executed"

    def _click_product(self, value: str) -> Reason:
        choice = self.page.choices.get(value)
        if choice is not None:
            axis, option = choice
            if self.selected.get(axis) == option:
                return "already_selected"
            self.selected[axis] = option
        elif value == BACK_TO_SEARCH:
            self._go_home()
        elif value == PREVIOUS:
            self._leave_product("search_results")
        elif value == ATTRIBUTES and self._offers_attributes():
            self._attributes_shown = True
        elif value == BUY:
            if not self._may_buy():
                return "incomplete_options"
            self.type = "terminal"
        else:
            return "unavailable_action"
        return "executed"

    def _go_home(self) -> None:
        self._number = 1
        self._leave_product("search_home")

    def _leave_product(self, page_type: PageType) -> None:
        self._page = None
        self.selected = {}
        self._attributes_shown = False
        self.type = page_type

    # --- what the page offers

    def missing(self) -> list[str]:
        """Axes of the product without a choice, in page order."""
        return [axis for axis in self.page.product.options if axis not in self.selected]

    def _may_buy(self) -> bool:
        return not self._profile.purchase_needs_all_options or not self.missing()

    def _offers_attributes(self) -> bool:
        inline = self._profile.attributes_button == "inline"
        return inline and bool(self.page.product.hidden_attributes) and not self._attributes_shown

    def _pages(self) -> int:
        return max(1, -(-len(self._results) // self._profile.page_size))

    def _listed(self) -> tuple[str, ...]:
        size = self._profile.page_size
        return self._results[(self._number - 1) * size : self._number * size]

    def actions(self) -> list[str]:
        """Clickable values of the page, in page order."""
        if self.type == "search_results":
            return self._results_actions()
        if self.type == "product_detail":
            return self._product_actions()
        return []

    def _results_actions(self) -> list[str]:
        actions = [BACK_TO_SEARCH]
        if self._number > 1:
            actions.append(PREVIOUS)
        if self._number < self._pages():
            actions.append(NEXT)
        actions += self._listed()
        return actions

    def _product_actions(self) -> list[str]:
        actions = [BACK_TO_SEARCH, PREVIOUS]
        if self._offers_attributes():
            actions.append(ATTRIBUTES)
        if self._may_buy():
            actions.append(BUY)
        selected = self.selected
        if not selected:
            return actions + list(self.page.choices)
        choices = self.page.choices.items()
        return actions + [label for label, (axis, v) in choices if selected.get(axis) != v]

    def state(self, last_action: dict[str, Any] | None) -> dict[str, Any]:
        """The structured page."""
        state = observation.base_state(self._profile, self.type, self.actions(), last_action)
        if self.type == "search_results":
            key = (self._number, len(self._seen) if self._profile.marks_seen else 0)
            if key not in self._result_pages:
                self._result_pages[key] = self._results_fields()
            state.update(self._result_pages[key])
        elif self.type == "product_detail":
            state.update(self._detail_fields())
        return state

    def _results_fields(self) -> dict[str, Any]:
        products = [self._world.summary(asin) for asin in self._listed()]
        if self._profile.marks_seen:
            products = [{**row, "seen": row["asin"] in self._seen} for row in products]
        return observation.results_fields(
            query=self._query,
            normalised=self._normalised,
            page=self._number,
            pages=self._pages(),
            total=len(self._results),
            first=(self._number - 1) * self._profile.page_size + 1,
            products=products,
        )

    def _detail_fields(self) -> dict[str, Any]:
        page = self.page
        hidden = page.product.hidden_attributes if self._attributes_shown else None
        return observation.detail_fields(
            product=page.summary,
            options=page.shown_options,
            selected=self.selected,
            missing=self.missing(),
            price=page.prices.resolve(self.selected).price,
            hidden_attributes=hidden,
        )
