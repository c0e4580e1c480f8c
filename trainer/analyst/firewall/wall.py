"""One check for cards and candidates: everything that must not leave the privileged part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.analyst.firewall.denylist import DenyList, catalogue_brands, catalogue_options
from trainer.analyst.firewall.folding import Folded
from trainer.analyst.firewall.gold import GoldFacts
from trainer.analyst.firewall.overlap import common_grams
from trainer.analyst.firewall.published import published_findings, strings_of
from trainer.analyst.firewall.rules import gold_hits, identifier_hits
from trainer.shop.catalogue import Catalogue

Profile = Literal["standard", "compat"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule. ``found`` is the private value itself: it belongs into the audit only."""

    rule: str
    found: str = ""

    def to_record(self) -> dict[str, str]:
        return {"rule": self.rule, "found": self.found}


class Firewall:
    """The rules of a profile over one catalogue. ``compat`` is the published firewall, no more."""

    def __init__(self, profile: Profile = "standard", catalogue: Catalogue | None = None) -> None:
        self.profile = profile
        standard = profile == "standard" and catalogue is not None
        self._brands = catalogue_brands(catalogue) if standard and catalogue else DenyList(())
        self._options = catalogue_options(catalogue) if standard and catalogue else DenyList(())
        self._common = (
            common_grams(product.title for product in catalogue.products.values())
            if standard and catalogue
            else frozenset()
        )

    def identity(self) -> str:
        """The profile and version of the rules: a change of either makes cards anew."""
        return f"{self.profile}-v1"

    def card(self, value: object, facts: GoldFacts) -> list[Finding]:
        """Findings in the deployable part of a card."""
        return self._check(value, published_findings(value, facts), [facts])

    def candidate(self, value: object, cited: Sequence[GoldFacts]) -> list[Finding]:
        """Findings in a compiler's output; ``cited`` are the facts of all traces behind it."""
        return self._check(value, published_findings(value, None), cited)

    def _check(
        self, value: object, published: Iterable[str], facts: Sequence[GoldFacts]
    ) -> list[Finding]:
        findings = [Finding(rule) for rule in published]
        if self.profile == "standard":
            text = Folded.of("\n".join(strings_of(value)))
            findings += [Finding(*hit) for hit in identifier_hits(text)]
            for each in facts:
                findings += [Finding(*hit) for hit in gold_hits(text, each, self._common)]
            findings += [Finding("names_catalogue_brand", e) for e in self._brands.hits(text)]
            findings += [Finding("names_catalogue_option", e) for e in self._options.hits(text)]
        return list(dict.fromkeys(findings))
