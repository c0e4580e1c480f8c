"""The words for states, statuses, treatments and endings, once for all pages.

Identifiers stay as they are in addresses, JSON and CSV; only what people read is worded. An unknown
identifier is shown as it is, so that a newer file never breaks a page.
"""

from __future__ import annotations

from collections.abc import Collection

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from intraskill_web.experiments.states import ROUND_STATE_LABELS, STATE_LABELS, WAITING

Words = dict[str, str | Promise]

STATES: Words = {
    "": _("not started"),
    **{state.value: label for state, label in ROUND_STATE_LABELS.items()},
    **{state.value: label for state, label in STATE_LABELS.items()},
    WAITING: pgettext_lazy("state of a round", "waiting"),
}
STAGES: Words = {
    "freeze": _("Freeze"),
    "train": _("Train"),
    "analyse": _("Analyse"),
    "validate": _("Validate"),
    "gate": _("Gate"),
    "select": _("Select"),
}
CHUNK_STATUS: Words = {
    "selected": _("Selected"),
    "retired": _("Retired"),
    "non_positive": _("Non-positive"),
    "rewrite_loser": _("Rewrite loser"),
    "held": _("Held"),
    "budget_excluded": _("Over budget"),
    "not_adopted": _("Not adopted"),
    "pooled": _("In the pool"),
}
OPERATIONS: Words = {
    "current": _("current"),
    "candidate": _("candidate"),
    "keep": _("current"),
    "add": _("add"),
    "rewrite": _("rewrite"),
    "retire": _("retire"),
    "merge": _("merge"),
    "split": _("split"),
}
CHANGES: Words = {
    "added": _("added"),
    "retired": _("retired"),
    "rewritten": _("rewritten"),
    "moved": _("moved"),
}
TREATMENTS: Words = {
    "skill_free": _("skill-free"),
    "assisted": _("assisted"),
    "assisted_empty": _("assisted, empty"),
    "diagnostic_full_skill": _("full skill (retry)"),
    "bare": _("bare"),
    "full": _("full skill"),
    "masked": _("masked"),
    "new": _("new skill"),
    "old": _("former skill"),
}
PURPOSES: Words = {
    "train": _("training"),
    "retry": _("full-skill retry"),
    "baseline": _("starting checkpoint"),
    "bare": _("validation, bare"),
    "full": _("validation, full skill"),
    "masked": _("gate, masked"),
    "confirm": _("gate, confirmation"),
    "test": _("test"),
}
OUTCOMES: Words = {
    "success": _("success"),
    "failure": _("policy failure"),
    "truncated": _("truncated"),
    "technical": _("technical failure"),
}
TERMINATIONS: Words = {
    "purchase": _("purchase"),
    "action_limit": _("turn limit"),
    "generation_length": _("token limit"),
}
PHASES: Words = {  # the page before an action, gate-analysis.md §14.1
    "search_home": _("Home page"),
    "search_results": _("Result list"),
    "product_detail": _("Product page"),
    "other": _("Other"),
    "protocol_repair": _("Protocol repair"),
}
TRIAGE: Words = {
    "not_frontier": _("not frontier"),
    "model_internalization_deficit": _("internalisation deficit"),
    "full_skill_failure_pending_analysis": _("pending analysis"),
    "environment_or_runtime_error": _("technical"),
    "all_wrong_retry_disabled": _("all wrong, no retry"),
}
TRIGGERS: Words = {  # why the analyst looked at a group
    "all_wrong": _("retry failed too"),
    "low_mean": _("rarely succeeded"),
    "cold_start": _("cold start"),
}
SPLITS: Words = {"train": _("training"), "val": _("validation"), "test": _("test")}
GATE_STATES: Words = {
    "complete": pgettext_lazy("state of a gate", "complete"),
    "incomplete": _("incomplete"),
}
WORKER_STATES: Words = {
    "idle": _("idle"),
    "busy": pgettext_lazy("state of a worker", "busy"),
    "suspended": _("suspended"),
    "started": _("starting"),
}
KINDS_OF_WORK: Words = {  # of jobs/placement.py; "stages" are both kinds of them
    "stages": _("stages"),
    "gpu": _("stages that play or train"),
    "cpu": _("stages that need no GPU"),
    "work": _("replays, exports and orders"),
}
UNITS: Words = {
    "step": _("steps"),
    "episode": _("episodes"),
    "task": _("tasks"),
    "card": _("cards"),
    "chunk": _("chunks"),
}


def word(words: Words, key: str) -> str:
    """The word for ``key``, or ``key`` itself."""
    return str(words.get(key, key))


def state_label(state: str) -> str:
    """The badge's word."""
    return capfirst(word(STATES, state))


def stage_label(kind: str) -> str:
    """The short name of a stage."""
    return word(STAGES, kind)


def takes(kinds: Collection[str]) -> str:
    """What a worker takes, of the kinds of ``jobs/placement.py``."""
    both = {"gpu", "cpu"} <= set(kinds)
    found = ["stages", *(set(kinds) - {"gpu", "cpu"})] if both else kinds
    return "; ".join(word(KINDS_OF_WORK, kind) for kind in KINDS_OF_WORK if kind in found)


def arms(text: str) -> str:
    """The words for an arm, or for the difference of two."""
    return " \u2212 ".join(word(TREATMENTS, arm) for arm in text.split(" \u2212 "))


def chunk_status(status: str) -> str:
    """The word for what a gate decided."""
    return word(CHUNK_STATUS, status)
