"""What a finding says and where it leads, in the language that is active."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import stage_label, state_label
from intraskill_web.episodes.links import episodes_url
from intraskill_web.monitoring.preflight.red import worded_refusal


@dataclass(frozen=True, slots=True)
class Place:
    """The round that a finding is about."""

    experiment: str
    round: int

    def episodes(self, **filters: Any) -> str:
        """The address of the round's training episodes that match ``filters``."""
        return episodes_url(
            experiment=self.experiment, round=self.round, purpose="train", **filters
        )

    @property
    def page(self) -> str:
        """The round's page."""
        return reverse("experiments:round", args=[self.experiment, self.round])


@dataclass(frozen=True, slots=True)
class Words:
    """A title that ends in what it is about, the numbers, and a link to what is behind them."""

    title: str
    detail: str
    href: str
    link: str


Facts = Mapping[str, Any]


def words(kind: str, subject: str, facts: Facts, place: Place) -> Words:
    """The words of a finding; of a kind that this version does not know, its name."""
    make = WORDS.get(kind)
    if make is None:
        return Words(f"{kind} {subject}".strip(), "", place.page, _("Round page"))
    return make(subject, facts, place)


def _stage(_subject: str, facts: Facts, place: Place) -> Words:
    title = _("%(stage)s: %(state)s") % {
        "stage": stage_label(facts["stage"]),
        "state": state_label(facts["state"]),
    }
    attempt = facts.get("attempt")
    href = reverse("experiments:attempt", args=[attempt]) if attempt else place.page
    return Words(title, str(facts.get("message", "")), href, _("Log and cause"))


def _unscored(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("Not all episodes are scored:"),
        _("%(rate)s of %(n)s at step %(step)d")
        % {
            "rate": formats.rate(facts["rate"]),
            "n": formats.count(facts["n"]),
            "step": facts["step"],
        },
        place.episodes(scored="no"),
        _("%(n)s episodes") % {"n": formats.count(facts["missing"])},
    )


def _technical(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("Technical drops:"),
        _("%(n)s groups, the last at step %(step)d")
        % {"n": formats.count(facts["groups"]), "step": facts["step"]},
        place.episodes(scored="no"),
        _("Episodes"),
    )


def _band(title: str, chunk: str, facts: Facts, href: str) -> Words:
    numbers = _("%(seen)s, target %(target)s (%(low)s–%(high)s)") % {
        "seen": formats.rate(facts["observed"]),
        "target": formats.rate(facts["target"]),
        "low": formats.rate(facts["low"]),
        "high": formats.rate(facts["high"]),
    }
    detail = f"{chunk} {numbers}".strip()
    return Words(title, detail, href, _("%(n)s groups") % {"n": formats.count(facts["shown"])})


def _inclusion(subject: str, facts: Facts, place: Place) -> Words:
    below = facts["side"] == "below"
    title = _("Inclusion below its band:") if below else _("Inclusion above its band:")
    return _band(title, facts.get("title") or subject, facts, place.episodes(chunk=subject))


def _skill_free(_subject: str, facts: Facts, place: Place) -> Words:
    below = facts["side"] == "below"
    title = _("Skill-free rate below its band:") if below else _("Skill-free rate above its band:")
    return _band(title, "", facts, place.episodes(treatment="skill_free"))


def _internalisation(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("More groups fail whole while retries succeed:"),
        _("all wrong %(before)s → %(after)s; %(saved)s of %(tried)s retries succeeded")
        % {
            "before": formats.rate(facts["before"]),
            "after": formats.rate(facts["after"]),
            "saved": formats.count(facts["saved"]),
            "tried": formats.count(facts["tried"]),
        },
        place.episodes(triage="model_internalization_deficit"),
        _("Groups"),
    )


def _pending(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("Failures pile up and no card is eligible:"),
        _("pending %(before)s → %(after)s")
        % {"before": formats.rate(facts["before"]), "after": formats.rate(facts["after"])},
        place.episodes(triage="full_skill_failure_pending_analysis"),
        _("%(n)s groups") % {"n": formats.count(facts["groups"])},
    )


def _stalled(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("No new step:"),
        _("usually %(t)s a step") % {"t": formats.duration(facts["median"])},
        place.page + "#log",
        _("Log"),
    )


def _coverage(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("The gate does not cover all pairs:"),
        _("%(used)s of %(planned)s")
        % {"used": formats.count(facts["used"]), "planned": formats.count(facts["planned"])},
        reverse("gates:detail", args=[place.experiment, place.round]),
        _("Gate"),
    )


def _gate(_subject: str, facts: Facts, place: Place) -> Words:
    detail = ""
    if facts.get("delta") is not None:
        detail = _("masked − bare %(delta)s %(interval)s over %(n)s pairs") % {
            "delta": formats.effect(facts["delta"]),
            "interval": formats.interval(facts.get("low"), facts.get("high")),
            "n": formats.count(facts["pairs"]),
        }
    return Words(
        _("Gate of round %(n)d is ready for review") % {"n": place.round},
        detail,
        reverse("gates:detail", args=[place.experiment, place.round]),
        _("Review"),
    )


def _held(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("Round %(n)d did not begin:") % {"n": facts["number"]},
        worded_refusal(str(facts["reason"])).rstrip("."),
        reverse("monitoring:preflight", args=[place.experiment]),
        _("Preflight"),
    )


def _vanished(_subject: str, facts: Facts, place: Place) -> Words:
    return Words(
        _("Host %(host)s vanished:") % {"host": facts["host"]},
        _("in the middle of %(stage)s; the stage goes on at another host, or waits for this one")
        % {"stage": stage_label(facts["stage"])},
        reverse("experiments:attempt", args=[facts["attempt"]]),
        _("Log and cause"),
    )


WORDS: Mapping[str, Callable[[str, Facts, Place], Words]] = {
    "stage": _stage,
    "unscored": _unscored,
    "technical": _technical,
    "inclusion": _inclusion,
    "skill_free": _skill_free,
    "internalisation": _internalisation,
    "pending": _pending,
    "stalled": _stalled,
    "coverage": _coverage,
    "gate": _gate,
    "held": _held,
    "vanished": _vanished,
}
