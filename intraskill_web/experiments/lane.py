"""The stage lane: what each stage does, did, or waits for, in the fixed order of a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from intraskill_web.core import formats
from intraskill_web.core.labels import UNITS, stage_label, word
from intraskill_web.experiments.models import Attempt, Round, Stage
from intraskill_web.experiments.time_left import left_of_stage
from intraskill_web.experiments.took import Took, took
from jobs.transitions import ACTIVE, DONE


@dataclass(frozen=True, slots=True)
class LaneStage:
    """One box of the lane. ``css`` is done, now or wait; ``lines`` are plain sentences."""

    stage: Stage
    label: str
    css: str
    attempt: Attempt | None
    count: str = ""
    lines: list[str] = field(default_factory=list)
    needs: str = ""
    took: Took | None = None

    @property
    def left(self) -> float | None:
        """Seconds left, when enough was done to tell."""
        return left_of_stage(self.stage)


def lane(
    round_: Round, stages: Sequence[Stage], attempts: Sequence[Attempt], config: Mapping[str, Any]
) -> list[LaneStage]:
    """The six boxes; ``attempts`` are those of all stages."""
    own: dict[int, list[Attempt]] = {stage.pk: [] for stage in stages}
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        own[attempt.stage_id].append(attempt)
    return [_box(round_, stage, stages, own[stage.pk], config) for stage in stages]


def _box(
    round_: Round,
    stage: Stage,
    stages: Sequence[Stage],
    attempts: Sequence[Attempt],
    config: Mapping[str, Any],
) -> LaneStage:
    if stage.state in DONE:
        css = "done"
    elif stage.state in ACTIVE:
        css = "now"
    elif stage.state:
        css = "ended"
    else:
        css = "wait"
    count = ""
    if stage.total and css in ("now", "ended"):
        count = _("%(done)s of %(total)s %(unit)s") % {
            "done": formats.count(stage.done),
            "total": formats.count(stage.total),
            "unit": word(UNITS, stage.unit),
        }
    before = next((s for s in stages if s.position == stage.position - 1), None)
    needs = ""
    if css == "wait" and before is not None and before.state not in DONE:
        needs = _("needs %(stage)s") % {"stage": stage_label(before.kind).lower()}
    return LaneStage(
        stage,
        stage_label(stage.kind),
        css,
        attempts[-1] if attempts else None,
        count,
        plan(round_, stage, config),
        needs,
        took(stage.started_at, stage.ended_at, attempts),
    )


def plan(round_: Round, stage: Stage, config: Mapping[str, Any]) -> list[str]:
    """What the stage is about, from the frozen settings, what came of it, and its cost in money."""
    lines = [PLANS[stage.kind](round_, config), *came(stage.kind, stage.outcome)]
    if stage.outcome.get("cost"):
        lines.append(formats.money(stage.outcome["cost"], stage.outcome.get("currency", "")))
    return lines


def came(kind: str, outcome: Mapping[str, Any]) -> list[str]:
    """What a finished stage found, of what it wrote down; nothing for one that has not."""
    lines = []
    if kind == "train" and outcome.get("success_last") is not None:
        lines.append(
            _("success %(first)s → %(last)s")
            % {
                "first": formats.rate(outcome.get("success_first")),
                "last": formats.rate(outcome["success_last"]),
            }
        )
    if kind == "analyse" and outcome.get("analyzed_cards"):
        lines.append(
            _("%(cards)s cards, %(candidates)s candidates")
            % {
                "cards": formats.count(outcome["analyzed_cards"]),
                "candidates": formats.count(outcome.get("candidates", 0)),
            }
        )
    if kind == "gate" and outcome.get("delta_mean") is not None:
        lines.append(
            _("%(kept)s kept, %(retired)s retired; %(delta)s")
            % {
                "kept": formats.count(outcome.get("selected", 0)),
                "retired": formats.count(outcome.get("retired", 0)),
                "delta": formats.effect(outcome["delta_mean"]),
            }
        )
    if kind == "select" and outcome.get("label"):
        n = outcome.get("bank_size", 0)
        made = ngettext("%(label)s: %(n)d chunk", "%(label)s: %(n)d chunks", n)
        lines.append(made % {"label": outcome["label"], "n": n})
    played = outcome.get("test", {}) if kind == "select" else outcome
    if played.get("bare_success") is not None:
        text = (
            _("test: bare %(bare)s, full %(full)s")
            if kind == "select"
            else _("success: bare %(bare)s, full %(full)s")
        )
        scores = {arm: formats.rate(played.get(f"{arm}_success")) for arm in ("bare", "full")}
        lines.append(text % scores)
    return lines


def _freeze(round_: Round, _config: Mapping[str, Any]) -> str:
    curriculum = getattr(round_, "curriculum", None)
    if curriculum is None:
        return _("freezes bank and curriculum")
    n = len(curriculum.chunks)
    return ngettext("%(n)d chunk, q %(q)s", "%(n)d chunks, q %(q)s", n) % {
        "n": n,
        "q": formats.rate(curriculum.q, 2),
    }


def _train(_round: Round, config: Mapping[str, Any]) -> str:
    train = config.get("train", {})
    rollout = train.get("rollout", {})
    return _("%(steps)s steps × %(groups)s groups × %(episodes)s episodes") % {
        "steps": train.get("steps", formats.UNKNOWN),
        "groups": rollout.get("groups_per_wave", formats.UNKNOWN),
        "episodes": rollout.get("episodes_per_group", formats.UNKNOWN),
    }


def _validate(_round: Round, config: Mapping[str, Any]) -> str:
    evaluation = config.get("evaluation", {})
    return _("bare: %(bare)s; full: %(full)s tasks") % {
        "bare": evaluation.get("bare_tasks") or _("all"),
        "full": evaluation.get("full_tasks") or _("all"),
    }


def _select(_round: Round, config: Mapping[str, Any]) -> str:
    budget = config.get("gate", {}).get("active_skill_budget", formats.UNKNOWN)
    return _("budget %(n)s chunks") % {"n": budget}


def _analyse(_round: Round, config: Mapping[str, Any]) -> str:
    if config.get("analyst", {}).get("kind") == "none":
        return _("no analyst: no candidates")
    return _("cards and candidates of the failures")


def _gate(_round: Round, config: Mapping[str, Any]) -> str:
    return str(WITHOUT_GATE.get(gate_mode(config), _("every task once more, masked")))


def gate_mode(config: Mapping[str, Any]) -> str:
    """``test``, or what a round does instead of a gate."""
    return str(config.get("gate", {}).get("mode", "test"))


WITHOUT_GATE = {
    "keep": gettext_lazy("no gate: the bank stays as it is"),
    "accept": gettext_lazy("no gate: every candidate joins untested"),
}
PLANS: Mapping[str, Callable[[Round, Mapping[str, Any]], str]] = {
    "freeze": _freeze,
    "train": _train,
    "analyse": _analyse,
    "validate": _validate,
    "gate": _gate,
    "select": _select,
}
