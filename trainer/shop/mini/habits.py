"""What the demonstrator knows about texts: which habit a sentence calls for, and how firmly.

This is the only place where the nature of a text is written down. Demonstrations for the warm start
are drawn with it; nothing that trains, gates, judges or shows chunks may read it (a test greps).
A shopper has every habit at a base rate, because people do sensible things unasked. A firm sentence
raises it to ``FIRM_RATE``, a vague one only half of the way. The base rates are calibrated so that
each habit moves success by a similar, measurable amount; see docs/design/embedded-policy.md.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRM_RATE = 0.99
#: a hasty shopper drops each of these habits with this probability
HASTE_DROP_RATE = 0.11
DROPPED_IN_HASTE = ("colour", "size", "details")


@dataclass(frozen=True, slots=True)
class Habit:
    """One habit, how often it is followed unasked, and the sentences that call for it."""

    name: str
    base_rate: float
    firm: tuple[str, ...]
    vague: tuple[str, ...]

    def rate(self, *, firm: bool = False, vague: bool = False) -> float:
        """Probability that a shopper who read such sentences follows the habit in an episode."""
        if firm:
            return FIRM_RATE
        return (self.base_rate + FIRM_RATE) / 2 if vague else self.base_rate


HABITS = (
    Habit(
        "brand",
        0.84,
        firm=(
            "Put the preferred brand in the query.",
            "Search with the brand name that the persona has.",
            "Always name the preferred brand when you search.",
        ),
        vague=("Keep the brand in mind.",),
    ),
    Habit(
        "next_page",
        0.74,
        firm=(
            "When no result fits, go to the next page.",
            "Skip sponsored results and look at later pages.",
            "If nothing on this page matches, do not open an item, turn to the next page.",
        ),
        vague=("Take a good look around before you choose.",),
    ),
    Habit(
        "details",
        0.78,
        firm=(
            "Open the details when the material is not shown.",
            "If the material is unknown, read the details.",
            "Check a hidden material in the details before buying.",
        ),
        vague=("Think about what things are made of.",),
    ),
    Habit(
        "missing_option",
        0.45,
        firm=(
            "Go back when a wanted option is missing.",
            "Leave an item that lacks the wanted colour or size.",
            "Return to the results if an option is not offered.",
        ),
        vague=("Mind which options there are.",),
    ),
    Habit(
        "colour",
        0.74,
        firm=(
            "Select the wanted colour before you buy.",
            "Set the colour that the user wants.",
            "Never buy without choosing the wanted colour.",
        ),
        vague=("Notice the colours.",),
    ),
    Habit(
        "size",
        0.88,
        firm=(
            "Select the wanted size before you buy.",
            "Set the size that the user wants.",
            "Never buy without choosing the wanted size.",
        ),
        vague=("Notice the sizes.",),
    ),
    Habit(
        "budget",
        0.15,
        firm=(
            "Check the price against the budget and go back.",
            "Never exceed the budget.",
            "Leave items that cost more than the budget.",
        ),
        vague=("Respect what the user can afford.",),
    ),
)

#: sentences that call for nothing a shopper of this world can do
INERT = (
    "Thank the seller and be polite.",
    "Keep a friendly tone.",
    "Think slowly and plan the work.",
    "Stay calm and careful.",
    "Read the request again before you start.",
    "Take time to read every word.",
    "Ask the seller a good question.",
    "Visit the shop of the seller often.",
    "Watch the time of the day.",
    "Tell the user about the shop.",
)

#: sentences that make a shopper hasty
HASTE = (
    "Save turns and buy at once.",
    "Buy right away.",
    "Be quick, a short visit is a good visit.",
)
