"""The proposal ledger."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.parameters import choice
from intraskill_web.core.twin import page
from intraskill_web.experiments.models import Experiment
from intraskill_web.ledger.page import OPERATIONS, PAGE, Filters, entries, funnels, table


@require_safe
def candidate_list(request: HttpRequest) -> HttpResponse:
    """``?experiment=&round=&operation=&reached=&q=&page=``: one row a candidate."""
    filters = Filters.of(request.GET)
    pages = Paginator(filters.rows(), PAGE)
    shown = pages.page(int(choice(request.GET, "page", map(str, pages.page_range), "1")))
    found = entries(list(shown.object_list))
    made = funnels(filters)
    rows = table(found)
    reached = [("", _("all")), ("judged", _("judged")), ("selected", _("selected"))]
    context = {
        "section": "ledger",
        "filters": filters,
        "filtered": filters != Filters(),
        "entries": found,
        "funnels": made,
        "total": pages.count,
        "first": shown.start_index(),
        "last": shown.end_index(),
        "experiments": Experiment.objects.values_list("name", flat=True)[:200],
        "operations": OPERATIONS,
        "reached": reached,
        "csv_url": filters.url(format="csv", page=shown.number),
        "next_url": filters.url(page=shown.next_page_number()) if shown.has_next() else "",
        "previous_url": filters.url(page=shown.previous_page_number())
        if shown.has_previous()
        else "",
    }

    def data() -> dict[str, Any]:
        return {
            "total": pages.count,
            "candidates": [
                row | {"source_card_ids": e.item.source_card_ids}
                for row, e in zip(rows.data(), found, strict=True)
            ],
            "funnels": [
                {
                    "experiment": f.experiment,
                    "round": f.round,
                    "cards": f.cards,
                    "eligible": f.eligible,
                    **f.counts,
                }
                for f in made
            ],
        }

    return page(request, "ledger/list.html", context, data, table=rows)
