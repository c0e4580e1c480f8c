"""The chapters of a report, in order."""

from __future__ import annotations

from collections.abc import Callable

from intraskill_web.reports.site.blocks import Chapter
from intraskill_web.reports.site.conduct import conduct
from intraskill_web.reports.site.evolution import evolution
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.method import method
from intraskill_web.reports.site.optimisation import optimisation
from intraskill_web.reports.site.overview import overview
from intraskill_web.reports.site.protocol import protocol
from intraskill_web.reports.site.reproduce import reproduce
from intraskill_web.reports.site.results import results
from intraskill_web.reports.site.shelves import episodes, library

MAKERS: tuple[Callable[[Inputs], Chapter], ...] = (
    overview, method, protocol, results, evolution, conduct, optimisation, reproduce, library,
    episodes,
)  # fmt: skip


def chapters(inputs: Inputs) -> list[Chapter]:
    """Every chapter that holds something, in the active language."""
    made = [make(inputs) for make in MAKERS]
    return [chapter for chapter in made if chapter.shown]
