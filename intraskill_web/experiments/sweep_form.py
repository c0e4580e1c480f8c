"""What somebody orders as a sweep: as typed, as understood, and what it will take and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from intraskill_web.experiments.estimate import Estimate, estimate
from intraskill_web.experiments.presets import LABELS
from intraskill_web.experiments.sweeps import arm_configs, base_config
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

USUAL_ARMS = tuple(LABELS)[:5]


@dataclass(slots=True)
class Order:
    """A sweep that is not made yet. Whoever starts it must have seen this very one's cost."""

    name: str = ""
    base_name: str = "mini/demo"
    arms: Sequence[str] = USUAL_ARMS
    seeds_text: str = "1, 2, 3"
    seeds: list[int] = field(default_factory=list)
    base: ExperimentConfig | None = None
    estimate: Estimate | None = None
    names: list[str] = field(default_factory=list)  # of its experiments, in their order
    error: InputError | None = None
    is_seen: bool = False

    @property
    def seen(self) -> str:
        """The hash of what is ordered."""
        return fingerprint([self.name, self.base_name, list(self.arms), self.seeds])

    def estimate_data(self) -> dict[str, Any] | None:
        """For JSON."""
        return self.estimate.data() if self.estimate else None


def order(post: QueryDict | None) -> Order:
    """The order that was sent, looked through; an untouched one for None."""
    if post is None:
        return Order()
    made = Order(
        name=post.get("name", "").strip(),
        base_name=post.get("base", ""),
        arms=post.getlist("arms"),
        seeds_text=post.get("seeds", ""),
    )
    try:
        made.seeds = _seeds(made.seeds_text)
        made.base = base_config(made.base_name)
        configs = arm_configs(made.name, made.base, arms=made.arms, seeds=made.seeds)
        made.names = [config.name for _arm, config in configs]
        made.estimate = estimate([config for _arm, config in configs])
    except InputError as refusal:
        made.error = refusal
    made.is_seen = made.error is None and post.get("seen") == made.seen
    return made


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(_("must be whole numbers"), field="seeds", value=text) from None
