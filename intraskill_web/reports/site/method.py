"""The method, in the words of this run: every number is taken from what it was started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.reports.site.blocks import Block, Chapter, Formula, Section, TableCard, Text
from intraskill_web.reports.site.inputs import Inputs

Json = Mapping[str, Any]


def method(inputs: Inputs) -> Chapter:
    """The loop, the curriculum, training, the analyst, the gate."""
    settings = inputs.analysis.settings
    return Chapter(
        key="method",
        title=_("Method"),
        lead=_("How a round works, with the settings of this run."),
        sections=[
            Section("loop", _("The loop"), _loop(inputs)),
            Section("curriculum", _("Curriculum: who sees which text"), _curriculum(inputs)),
            Section("training", _("Training"), _training(settings)),
            Section("analyst", _("From failures to candidates"), _analyst(settings)),
            Section("gate", _("Gate: which texts stay"), _gate(inputs)),
        ],
    )


def _loop(inputs: Inputs) -> list[Block]:
    return [
        Text(
            [
                _(
                    "A round starts with a frozen bank of text chunks. Training shows each chunk "
                    "to a random share of the groups, so that the policy learns with and without "
                    "it. Groups that fail throughout are tried once more with the whole bank: if "
                    "that succeeds, the weights lag behind the text; if not, an analyst looks for "
                    "the earliest cause and may propose a chunk or a rewrite."
                ),
                _(
                    "The new checkpoint is then validated without any text, and a gate plays the "
                    "validation tasks again under random masks over all chunks and proposals. What "
                    "a text adds is its coefficient; the gate's rule makes the next bank from it."
                ),
                _("This run has %(n)s rounds and starts with %(k)s chunks.")
                % {
                    "n": len(inputs.analysis.rounds),
                    "k": len(inputs.analysis.banks[0].chunks) if inputs.analysis.banks else 0,
                },
            ]
        )
    ]


def _curriculum(inputs: Inputs) -> list[Block]:
    settings: Json = inputs.analysis.settings.get("curriculum") or {}
    if not settings:
        return []
    blocks: list[Block] = [
        Text(
            [
                _(
                    "With probability q = %(q)s a group of episodes sees no text at all. Otherwise "
                    "each chunk is shown with its own probability ρ, drawn once for the group, so "
                    "that all episodes of a group share one prompt."
                )
                % {"q": settings.get("skill_free_probability")}
            ]
        ),
        Formula(
            "ρ(c) = ρ_min + (ρ_max − ρ_min) · max(0, c) / c_max",
            _("c: measured effect of the chunk; c_max: largest effect in the bank; ρ from %(a)s to "
              "%(b)s")
            % {"a": settings.get("rho_min"), "b": settings.get("rho_max")},
        ),
    ]  # fmt: skip
    titles = {c.skill_id: c.title for bank in inputs.analysis.banks for c in bank.chunks}
    rows = [
        {"round": item.round, "chunk": skill_id, "title": titles.get(skill_id, ""), "rho": rho,
         "state": item.state_id[:12]}
        for item in inputs.analysis.rounds
        for skill_id, rho in item.rho.items()
    ]  # fmt: skip
    columns = [
        Column("round", _("Round"), "count"),
        Column("chunk", _("Chunk"), "mono"),
        Column("title", _("Title")),
        Column("rho", _("ρ"), "rate"),
        Column("state", _("State"), "mono"),
    ]
    if rows:
        blocks.append(
            TableCard(
                _("The curricula of this run"), Table("curricula", columns, rows),
                source=_("curriculum.json of each round"), csv="data/curricula.csv",
            )
        )  # fmt: skip
    return blocks


def _training(settings: Json) -> list[Block]:
    train: Json = settings.get("train") or {}
    rollout, optimiser = train.get("rollout") or {}, train.get("optimiser") or {}
    text = [
        _(
            "Group-relative policy optimisation: the advantage of an episode is its reward minus "
            "the mean of its group. Groups whose rewards are all equal teach nothing and are "
            "dropped; further groups are played until enough are left."
        )
    ]
    if rollout:
        text.append(
            _(
                "Here: %(steps)s steps a round; waves of %(wave)s groups of %(size)s episodes, "
                "of which %(kept)s groups are trained on in %(updates)s updates a step; learning "
                "rate %(rate)s, clip range %(low)s below and %(high)s above."
            )
            % {
                "steps": train.get("steps"),
                "wave": rollout.get("groups_per_wave"),
                "size": rollout.get("episodes_per_group"),
                "kept": rollout.get("groups_kept"),
                "updates": optimiser.get("updates_per_step"),
                "rate": optimiser.get("learning_rate"),
                "low": optimiser.get("clip_low"),
                "high": optimiser.get("clip_high"),
            }
        )
    return [
        Text(text),
        Formula(
            "A_i = r_i − mean(r of the group)",
            _("r: strict reward of an episode; no division by the standard deviation")
            if not optimiser.get("std_normalisation")
            else _("r: strict reward of an episode, divided by the group's standard deviation"),
        ),
    ]


def _analyst(settings: Json) -> list[Block]:
    analyst: Json = settings.get("analyst") or {}
    text = [
        _(
            "The analyst may know the goal; what it hands on may not. A card proposes a text only "
            "when a trial with the repair succeeded, and a firewall refuses texts that carry "
            "facts of the task. A compiler merges the cards of a round into additions and rewrites."
        )
    ]
    if analyst.get("max_candidates"):
        text.append(
            _("Analyst of this run: %(kind)s, at most %(n)s candidates a round.")
            % {"kind": analyst.get("kind", ""), "n": analyst["max_candidates"]}
        )
    return [Text(text)]


def _gate(inputs: Inputs) -> list[Block]:
    gates = inputs.analysis.gates
    settings: Json = inputs.analysis.settings.get("gate") or {}
    profile = gates[0].profile if gates else settings.get("profile", "")
    budget = settings.get("active_skill_budget")
    blocks: list[Block] = []
    if profile == "published":
        blocks += [
            Text(
                [
                    _(
                        "Each validation task is played once under a mask drawn by hash: a plain "
                        "chunk is shown or not, a chunk with rewrites shows one version or none. "
                        "The bare episode of the same task is the baseline."
                    ),
                    _(
                        "Within a family the version with the largest coefficient wins, the old "
                        "one on a tie; winners above zero stay, at most %(budget)s."
                    )
                    % {"budget": budget},
                ]
            ),
            Formula(
                "R_i − B_i = C_iᵀ β + ε_i",
                _("R: masked reward, B: bare reward, C: mask of the task; no intercept"),
            ),
        ]
    elif profile:
        blocks += [
            Text(
                [
                    _(
                        "Each validation task is played under a mask and its opposite, so that "
                        "task difficulty cancels. Effects come with robust standard errors and are "
                        "shrunk towards zero; a candidate enters and a chunk leaves on evidence "
                        "only, with Holm's adjustment. What is undecided is held at the smallest "
                        "ρ. At most %(budget)s chunks stay."
                    )
                    % {"budget": budget}
                ]
            ),
            Formula(
                "R_i⁺ − R_i⁻ = (C_i⁺ − C_i⁻)ᵀ β + ε_i",
                _("R: reward under a mask and under its opposite; C: the masks"),
            ),
        ]
    rows = [
        {"round": gate.round, "profile": gate.profile, "n": gate.n, "columns": gate.columns,
         "condition": gate.condition_number, "error": gate.refit_max_error
         if gate.refit_max_error is not None else gate.stated_refit_max_error,
         "pool": gate.pool_sha256[:12], "assignment": gate.assignment_sha256[:12]}
        for gate in gates
    ]  # fmt: skip
    columns = [
        Column("round", _("Round"), "count"),
        Column("profile", _("Profile")),
        Column("n", _("Masked episodes"), "count"),
        Column("columns", _("Columns"), "count"),
        Column("condition", _("Condition number"), "rate"),
        Column("error", _("Largest refit error"), "number"),
        Column("pool", _("Pool"), "mono"),
        Column("assignment", _("Assignment"), "mono"),
    ]
    if rows:
        sources = "; ".join(gate.source for gate in gates)
        blocks.append(
            TableCard(_("The gates of this run"), Table("gates", columns, rows), source=sources,
                      note=_("A condition number near 1 means that chunks were shown independently "
                             "of each other."), csv="data/gates.csv")
        )  # fmt: skip
    return blocks


def flat(settings: Json, prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names and values."""
    found: list[tuple[str, str]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found += flat(value, f"{name}.")
        else:
            found.append((name, formats.UNKNOWN if value is None else str(value)))
    return found
