"""What a shopper can neglect, in terms that hold for every category of goods.

A mechanism is one thing a good shopper does and a failed one did not. Each has a name, a sentence
for cards, the words by which a chunk about it is recognised, and sentences that would teach it:
some as they stand, others composed of a situation (``when``) and a deed (``do``). They say only
what the shop's pages show; no product, brand or value stands in them. ``{hidden}`` is the label of
what a page shows only on request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from trainer.analyst.words import words_of
from trainer.canonical import fingerprint


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One thing to do. Without ``advice`` no text can help: the agent ran out of turns."""

    name: str
    failure: str
    applies: str
    trigger: str
    verify: str
    topic: frozenset[str]
    advice: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    do: tuple[str, ...] = ()

    def sentences(self, hidden: str) -> tuple[str, ...]:
        """Every wording, in order of preference; ``hidden`` is the page's label of such a thing."""
        composed = (
            frame.format(when=when, do=do)
            for when in self.when
            for do, frame in zip(self.do, ("If {when}, {do}.", "When {when}, {do}."), strict=True)
        )
        wordings = (text.format(hidden=hidden) for text in (*self.advice, *composed))
        return tuple(dict.fromkeys(wordings))


def _topic(text: str) -> frozenset[str]:
    return frozenset(text.split())


BRAND_IN_QUERY = Mechanism(
    name="brand_in_query",
    failure="the search did not name the preferred brand, so the fitting product was not listed",
    applies="the user prefers a brand",
    trigger="the search box is open",
    verify="the listed products carry the preferred brand",
    topic=_topic("brand brands query search"),
    advice=(
        "Name the preferred brand in the search.",
        "Search with the preferred brand and not without it.",
    ),
)
TURN_PAGE = Mechanism(
    name="turn_page",
    failure="a product that does not fit was opened although another page of results was left",
    applies="no product on a page of results fits",
    trigger="every listed product lacks something that is wanted",
    verify="a fitting product is listed before one is opened",
    topic=_topic("next page pages results listed"),
    advice=(
        "When no listed product fits, take the next page.",
        "If nothing on this page matches, look at the next page.",
    ),
    when=("no listed product fits", "nothing on this page matches"),
    do=("take the next page", "look at the next page"),
)
OPEN_FITTING = Mechanism(
    name="open_fitting",
    failure="a product that does not fit was opened although a fitting one was listed",
    applies="a page of results lists a product that fits",
    trigger="one listed product shows everything that can be seen there",
    verify="the opened product shows what was asked for",
    topic=_topic("open fitting matches listed request"),
    advice=(
        "Open only a listed product that matches the request.",
        "Read the list and open the product that fits.",
    ),
)
REVEAL_HIDDEN = Mechanism(
    name="reveal_hidden",
    failure="what the page does not show at first was never asked for before the purchase",
    applies="a wanted property is not shown on the product page",
    trigger="the page calls the property unknown",
    verify="the property is shown before the purchase",
    topic=_topic("details material unknown hidden shown attributes"),
    advice=(
        "Open the details when the {hidden} is unknown.",
        "If the {hidden} is hidden, look at the details before you buy.",
    ),
    when=("the {hidden} is unknown", "the {hidden} is hidden"),
    do=("open the details", "look at the details before you buy"),
)
LEAVE_WRONG = Mechanism(
    name="leave_wrong",
    failure="a product was bought although its page showed that it lacks a wanted property",
    applies="a product page shows another property than the wanted one",
    trigger="a shown property differs from the wanted one",
    verify="everything shown on the page agrees with the request",
    topic=_topic("material other wrong"),
    advice=(
        "Go back when the {hidden} is not the wanted one.",
        "When the page shows other {hidden}, go back and open other products.",
    ),
    when=("the {hidden} is not the wanted one", "the page shows other {hidden}"),
    do=("go back", "go back and open other products"),
)
LEAVE_MISSING_OPTION = Mechanism(
    name="leave_missing_option",
    failure="a product was bought that does not offer a wanted option",
    applies="a wanted option is not among those offered",
    trigger="the page lists the options and the wanted one is not there",
    verify="every wanted option is offered before the purchase",
    topic=_topic("option options missing lacking lacks offered offer offers"),
    advice=(
        "If a wanted option is not offered, go back.",
        "When the page lacks a wanted option, go back and open other products.",
    ),
    when=("a wanted option is not offered", "the page lacks a wanted option"),
    do=("go back", "go back and open other products"),
)
WITHIN_BUDGET = Mechanism(
    name="within_budget",
    failure="a product was bought that costs more than the budget",
    applies="the user has a budget",
    trigger="the price on the page is higher than the budget",
    verify="the price of the chosen variant does not exceed the budget",
    topic=_topic("budget price prices afford cost costs exceed pay paid limit"),
    advice=(
        "Go back when the price is over the budget.",
        "Check the price against the budget before you buy, and go back when it is over.",
    ),
    when=("the price is over the budget",),
    do=("go back", "go back and open other products"),
)
FINISH = Mechanism(
    name="finish",
    failure="nothing was bought before the turns ran out",
    applies="every task",
    trigger="few turns are left",
    verify="a purchase is made",
    topic=frozenset(),
)


def select_option(axis: str) -> Mechanism:
    """The mechanism of one option axis, e.g. ``colour``."""
    return Mechanism(
        name=f"select_option:{axis}",
        failure=f"the wanted {axis} was offered and not selected before the purchase",
        applies=f"a {axis} is wanted",
        trigger=f"the page offers the wanted {axis} and it is not chosen",
        verify=f"the wanted {axis} is chosen before the purchase",
        topic=frozenset({axis, f"{axis}s"}),
        advice=(
            f"Select the wanted {axis} before you buy.",
            f"Do not buy until the wanted {axis} is chosen.",
        ),
        when=(f"the page offers the wanted {axis}", f"the wanted {axis} is not chosen"),
        do=("select it before you buy", "select it and do not buy until it is chosen"),
    )


GENERAL = (
    BRAND_IN_QUERY,
    TURN_PAGE,
    OPEN_FITTING,
    REVEAL_HIDDEN,
    LEAVE_WRONG,
    LEAVE_MISSING_OPTION,
    WITHIN_BUDGET,
    FINISH,
)


def mechanisms_of(axes: Collection[str]) -> tuple[Mechanism, ...]:
    """All mechanisms of a shop whose products have these option axes."""
    return (*GENERAL, *(select_option(axis) for axis in sorted(axes)))


def wording_sha256(known: Collection[Mechanism]) -> str:
    """The identity of everything the mechanisms say."""
    return fingerprint([[each.name, each.failure, *each.sentences("")] for each in known])


def mechanism_of(text: str, known: Collection[Mechanism], hidden: str) -> Mechanism | None:
    """What a chunk's text is about: the mechanism whose sentence it is, else the one with most of
    its words, or none at all."""
    words = words_of(text)
    for mechanism in known:
        if any(words == words_of(sentence) for sentence in mechanism.sentences(hidden)):
            return mechanism
    said = frozenset(words)
    best = max(known, key=lambda mechanism: len(mechanism.topic & said), default=None)
    return best if best is not None and best.topic & said else None
