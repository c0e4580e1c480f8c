"""The small synthetic catalogue that stands in for a data set."""

from __future__ import annotations

from collections.abc import Iterable

from trainer.shop.profiles import ShopProfile
from trainer.shop.records import PublishedData, load_records
from trainer.shop.synthetic import SyntheticSettings, generate_records, records_sha256

_SHARES = ("train", "train", "val", "train", "train", "test")


def bundled_data(profile: ShopProfile) -> PublishedData:
    """Sixty products, one task each; a test holds the hash."""
    records = list(generate_records(SyntheticSettings()))
    return load_records(records, profile, sha256=records_sha256(records), source="synthetic")


def shares(task_ids: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """Two thirds to train, a sixth each to val and test, by position."""
    splits: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for place, task_id in enumerate(sorted(task_ids)):
        splits[_SHARES[place % len(_SHARES)]].append(task_id)
    return {name: tuple(ids) for name, ids in splits.items()}
