"""A seeded synthetic catalogue in the published schema, in Chinese and English.

It stands in for the real data, which may not be redistributed: near-duplicate products, axes that
move the price and axes that do not, personas that hide the budget, and every noise kind known from
the real data (environment.md §1.5, §7.1). All names are invented.
"""

from __future__ import annotations

from trainer.shop.synthetic.generate import SyntheticSettings, generate_records, records_sha256

__all__ = ["SyntheticSettings", "generate_records", "records_sha256"]
