"""The gold firewall: what the analyst knows of one task never reaches a policy.

``published.py`` holds the published rules to the letter; ``rules.py`` adds ours. Every finding is
listed, none replaces another. Specification: gate-analysis.md §§11.4, 16.4.
"""

from trainer.analyst.firewall.gold import GoldFacts, gold_facts
from trainer.analyst.firewall.wall import Finding, Firewall

__all__ = ["Finding", "Firewall", "GoldFacts", "gold_facts"]
