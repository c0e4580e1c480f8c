"""``MiniLanguage``: the embedded world in single words, for a policy that reads and writes words.

The pages are the machine's own; this is only their notation. Its details were chosen because they
decide how many demonstrations a small model needs (docs/design/embedded-policy.md, "Notation"):

* an entry's number stands after the entry, so it can gather what was said before it;
* options that were not chosen read ``none``, so no comparison with a preselected value is needed;
* an entry that was opened before carries ``seen``, and a product page is printed whole each time,
  so the last page carries all the state.

A turn of the policy is one verb with its arguments; ``decode`` turns it into the shop's tool call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.shop.mini.words import COLOURS, MATERIALS, SIZES, vocabulary
from trainer.shop.navigation import ATTRIBUTES, BACK_TO_SEARCH, BUY, NEXT, PREVIOUS
from trainer.shop.tools import ToolCallError
from trainer.shop.types import Task

#: most words of one turn, the verb included, before ``<end>`` must come
MAX_TURN_WORDS = 7

_WORD = re.compile(r"[#$]?[a-z0-9]+")
_AXES = {**dict.fromkeys(COLOURS, "colour"), **dict.fromkeys(SIZES, "size")}
_MATERIALS = frozenset(MATERIALS)

ToolRequest = tuple[str, dict[str, str]]


class MiniLanguage:
    """Layout of prompts and pages, and the meaning of the policy's words. Stateless."""

    def vocabulary(self) -> tuple[str, ...]:
        """Every word the world can produce or read; the position is the token id."""
        return vocabulary()

    def prompt(self, task: Task, chunk_texts: Sequence[str]) -> list[tuple[str, str]]:
        """Messages before the first page: chunks and persona, then the request."""
        words = ["skill"]
        for text in chunk_texts:
            words += [*words_of(text), ";"]
        words.append("persona")
        for name, value in task.persona.items():
            words += [name, str(value)]
        return [("system", " ".join(words)), ("user", f"request {task.instruction_simple}")]

    def render(self, state: Mapping[str, Any]) -> str:
        """The page as words; a page that answers a refused action begins with ``error``."""
        last_action = state.get("last_action")
        refused = last_action is not None and not last_action["valid"]
        words = ["error"] if refused else []
        page_type = state["page_type"]
        if page_type == "search_home":
            words.append("home")
        elif page_type == "search_results":
            words += _results_words(state)
        elif page_type == "product_detail":
            words += _product_words(state)
        else:
            words.append("done")
        return " ".join(words)

    def feedback(self, code: str) -> str:
        """The answer to a turn that could not be read as an action."""
        return "error"

    def decode(self, words: Sequence[str], state: Mapping[str, Any]) -> ToolRequest:
        """The tool call that ``words`` stand for. Raises ToolCallError when they stand for none."""
        if not words or len(words) > MAX_TURN_WORDS:
            raise ToolCallError("invalid_tool_call", f"a turn has 1 to {MAX_TURN_WORDS} words")
        verb, *arguments = words
        if verb == "search" and arguments:
            return "search", {"query": " ".join(arguments)}
        if verb in _BUTTONS and not arguments:
            return "click", {"value": _BUTTONS[verb]}
        if verb == "back" and not arguments:
            return "click", {"value": PREVIOUS if _has_previous(state) else BACK_TO_SEARCH}
        if verb == "open" and len(arguments) == 1:
            return "click", {"value": _listed_product(arguments[0], state)}
        if verb == "select" and len(arguments) == 1 and arguments[0] in _AXES:
            return "click", {"value": f"{_AXES[arguments[0]]}={arguments[0]}"}
        if verb in _VERBS:
            raise ToolCallError("invalid_tool_arguments", f"{verb} does not take {arguments}")
        raise ToolCallError("invalid_tool_call", f"{verb!r} is not a verb")


_BUTTONS = {"next": NEXT, "details": ATTRIBUTES, "buy": BUY}
_VERBS = frozenset((*_BUTTONS, "search", "back", "open", "select"))


def words_of(text: str) -> list[str]:
    """A chunk's text as lower-case words; punctuation and layout are dropped."""
    return _WORD.findall(text.casefold())


def _results_words(state: Mapping[str, Any]) -> list[str]:
    words = ["results", "page", str(state["page"]), "of", str(state["total_pages"])]
    if not state["products"]:
        return [*words, "none"]
    asked = state["search_text"].split()
    for place, product in enumerate(state["products"], 1):
        brand, feature, category = product["title"].split()
        if product.get("seen"):
            words.append("seen")
        words += [_price_word(product["price"]), brand, feature]
        if category not in asked:
            words.append(category)
        words.append(f"#{place}")
    return words


def _product_words(state: Mapping[str, Any]) -> list[str]:
    product = state["product"]
    shown = (*product["key_attributes"], *state.get("hidden_attributes", ()))
    material = next((word for word in shown if word in _MATERIALS), "unknown")
    price = state.get("selected_price", product["price"])
    words = ["item", *product["title"].split(), "material", material, "price", _price_word(price)]
    chosen = state["selected_options"]
    for axis, values in state["available_options"].items():
        words += [f"{axis}s", *values]
    return [*words, "chosen", *(chosen.get(axis, "none") for axis in state["available_options"])]


def _price_word(price: str | float) -> str:
    """``$12`` for 12.0, "12" and the listing "12 to 18"."""
    lowest = price.split()[0] if isinstance(price, str) else price
    return f"${int(float(lowest))}"


def _has_previous(state: Mapping[str, Any]) -> bool:
    return PREVIOUS in state["actions"]


def _listed_product(index: str, state: Mapping[str, Any]) -> str:
    """The id of the product that ``#1``… names on a results page."""
    products = state.get("products", ())
    number = index.removeprefix("#")
    if not index.startswith("#") or not number.isdecimal() or not 1 <= int(number) <= len(products):
        raise ToolCallError("invalid_tool_arguments", f"the page has no entry {index!r}")
    asin: str = products[int(number) - 1]["asin"]
    return asin
