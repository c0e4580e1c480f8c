"""The page of internalisation."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.parameters import choice
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.skills.internalisation import build
from intraskill_web.skills.internalisation_tables import checkpoints_table, training_table


@require_safe
def internalisation(request: HttpRequest, name: str) -> HttpResponse:
    """``?panel=training`` chooses the second table for CSV."""
    experiment = get_object_or_404(Experiment, name=name)
    found = build(experiment)
    tables = {
        "checkpoints": checkpoints_table(found.checkpoints),
        "training": training_table(found.training),
    }
    context = {
        "section": "experiments",
        "experiment": experiment,
        "found": found,
        "crumbs": [
            (_("Experiments"), reverse("experiments:list")),
            (name, reverse("experiments:detail", args=[name])),
            (_("Internalisation"), ""),
        ],
    }

    def data() -> dict[str, Any]:
        return {key: table.data() for key, table in tables.items()}

    table = tables[choice(request.GET, "panel", tables, "checkpoints")]
    return page(request, "skills/internalisation.html", context, data, table=table)
