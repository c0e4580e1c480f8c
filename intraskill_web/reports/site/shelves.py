"""The library and the chosen episodes as chapters."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.reports.site.blocks import Chapter, Documents, Episodes, Section, Text
from intraskill_web.reports.site.inputs import Inputs


def library(inputs: Inputs) -> Chapter:
    """Every document of the run that may be shown, searchable without a network."""
    return Chapter(
        key="library",
        title=_("Library"),
        lead=_("Configurations, banks, curricula, candidates and summaries as the run wrote them. "
               "Only named fields are shown; goals, personas and evidence cards are not."),
        sections=[
            Section("documents", _("Documents"),
                    [Documents(inputs.library)] if inputs.library else []),
        ],
        scripts=("assets/library.js",),
    )  # fmt: skip


def episodes(inputs: Inputs) -> Chapter:
    """Episodes chosen by a stated rule."""
    text = _(
        "Chosen by rule, not by hand: of every condition the first success and the first failure "
        "in the order of tasks, and both sides of the chosen cases. Goals, personas and prompts "
        "are left out."
    )
    return Chapter(
        key="episodes",
        title=_("Episodes"),
        lead=_("What single episodes look like, turn by turn."),
        sections=[
            Section("rule", _("How they were chosen"), [Text([text])] if inputs.samples else []),
            Section("samples", _("Episodes"),
                    [Episodes(inputs.samples)] if inputs.samples else []),
        ],
    )  # fmt: skip
