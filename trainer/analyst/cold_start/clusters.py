"""Clusters: cards of one channel, batch by batch, merged by mechanism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.analyst.cold_start.success import TRAVELLING

Row = dict[str, Any]
BATCH = 40
MOST_CLUSTERS = 12
TEXTS = (
    "workflow_stage",
    "mechanism",
    "applicable_when",
    "verification",
    "common_failure",
)


class Clusterer(Protocol):
    """Merges the cards of one batch. What it returns breaks no rule of ``cluster_errors``."""

    def cluster(self, channel: str, cards: Sequence[Row]) -> list[Row]: ...


def evidence(channel: str, card: Mapping[str, Any]) -> Row:
    """What a clusterer sees of a card: nothing but what may travel."""
    if channel == "success":
        parts = {name: card[name] for name in TRAVELLING}
        return {"card_id": card["card_id"], **parts, "confidence": card["confidence"]}
    return {"card_id": card["card_id"], **card["deployable_abstraction"]}


def batches_of(cards: Sequence[Row]) -> list[Sequence[Row]]:
    """Cards in order of their ids, forty at a time."""
    ordered = sorted(cards, key=lambda card: str(card["card_id"]))
    return [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]


def cluster_id(channel: str, batch: int, cluster: int) -> str:
    """``success-batch-001-cluster-01``; both numbers count from 1."""
    return f"{channel}-batch-{batch:03d}-cluster-{cluster:02d}"


def cluster_errors(clusters: object, card_ids: Sequence[str]) -> list[str]:
    """Every way in which the clusters of a batch break their contract."""
    if not isinstance(clusters, list) or not all(isinstance(item, dict) for item in clusters):
        return ["clusters must be a list of objects"]
    most = min(MOST_CLUSTERS, len(card_ids))
    errors = []
    if len(clusters) > most:
        errors.append(f"{len(clusters)} clusters, at most {most} are allowed")
    uses: Counter[str] = Counter()
    for number, cluster in enumerate(clusters):
        errors += shape_errors(cluster, TEXTS, "evidence_card_ids", f"clusters[{number}]")
        uses.update(texts(cluster.get("evidence_card_ids")))
    errors += [f"unknown card id {card!r}" for card in uses if card not in card_ids]
    errors += [f"card {card!r} is used {n} times" for card, n in uses.items() if n > 1]
    return errors


def shape_errors(item: Row, names: Sequence[str], cited: str, where: str) -> list[str]:
    """Missing texts, an empty procedure, or no evidence."""
    errors = [
        f"{where}.{name} must be a non-empty text"
        for name in names
        if not isinstance(item.get(name), str) or not item[name].strip()
    ]
    steps = texts(item.get("procedure"))
    if not steps or steps != item.get("procedure") or not all(map(str.strip, steps)):
        errors.append(f"{where}.procedure must be a non-empty list of non-empty texts")
    ids = texts(item.get(cited))
    if not ids or ids != item.get(cited):
        errors.append(f"{where}.{cited} must be a non-empty list of ids")
    return errors


def texts(value: object) -> list[str]:
    """The texts in a value that should be a list of them."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def cluster_channel(clusterer: Clusterer, channel: str, cards: Sequence[Row]) -> list[Row]:
    """The clusters of a channel, each with its id and channel."""
    clusters = []
    for batch, members in enumerate(batches_of(cards), 1):
        for number, cluster in enumerate(clusterer.cluster(channel, members), 1):
            name = cluster_id(channel, batch, number)
            clusters.append({"cluster_id": name, "channel": channel, **cluster})
    return clusters
