"""The page of a round's masks: inclusion by window, co-occurrence, and the audit of treatments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.parameters import choice
from intraskill_web.core.tables import Column, Table
from intraskill_web.core.twin import page
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.monitoring import inclusion, series
from intraskill_web.monitoring.inclusion import SKILL_FREE, InclusionRow, inclusion_rows
from intraskill_web.skills.mask_audit import Pair, Shown, audit, groups_of, together
from intraskill_web.skills.mask_windows import Window, spans, windows
from intraskill_web.skills.models import Curriculum
from trainer.errors import InputError
from trainer.skills.curriculum import load_curriculum
from trainer.skills.masks import treatment

WIDTHS = (1, 5, 10)
LISTED = 20  # groups that break a rule, by name


@require_safe
def masks(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """``?window=1|5|10`` steps a column; ``?panel=pairs`` chooses the other table for CSV."""
    round_, curriculum = _found(name, number)
    targets = {c["skill_id"]: float(c["rho"]) for c in curriculum.chunks}
    own, _earlier = series.of_round(round_, 0, ())
    rows = inclusion_rows(own, curriculum.q, targets)
    width = int(choice(request.GET, "window", map(str, WIDTHS), "5"))
    borders = spans([c.step for c in rows[0].counts], width)
    cells = [windows(row, borders) for row in rows]
    seen = Episode.objects.filter(round=round_, purpose="train", group_index__isnull=False)
    shown = seen.values_list("group_index", "treatment_mode", "skill_ids")
    groups = groups_of(shown.iterator(), _draw(round_, curriculum))  # type: ignore[arg-type]
    checked, pairs = audit(groups), together(groups, targets)
    titles = _titles(curriculum)
    tables = {
        "windows": _windows_table(rows, cells),
        "pairs": _pairs_table(list(targets), pairs),
    }

    def href(**query: Any) -> str:
        return episodes_url(experiment=name, round=number, purpose="train", **query)

    context = {
        "section": "experiments",
        "round": round_,
        "curriculum": curriculum,
        "borders": borders,
        "width": width,
        "widths": WIDTHS,
        "lines": [
            {
                "row": row,
                "title": titles.get(row.skill_id, row.skill_id),
                "free": row.skill_id == SKILL_FREE,
                "windows": line,
                "href": href(treatment="skill_free")
                if row.skill_id == SKILL_FREE
                else href(chunk=row.skill_id),
            }
            for row, line in zip(rows, cells, strict=True)
        ],
        "audit": checked,
        "listed": [
            (group, href(group=group.index))
            for group in [*checked.split, *(g for g in checked.off_plan if not g.split)][:LISTED]
        ],
        "pairs": [
            {"id": i, "title": titles.get(i, i), "place": place, "cells": line[:place]}
            for place, (i, line) in enumerate(zip(targets, pairs, strict=True), 1)
        ]
        if checked.groups
        else [],
        "assisted": pairs[0][0].n if pairs else 0,
        "crumbs": crumbs(round_, (_("Masks"), "")),
    }

    def data() -> dict[str, Any]:
        return {
            "q": curriculum.q,
            "windows": tables["windows"].data(),
            "pairs": tables["pairs"].data(),
            "audit": {
                "groups": checked.groups,
                "episodes": checked.episodes,
                "draw_repeated": checked.checked,
                "siblings_differ": [g.index for g in checked.split],
                "off_plan": [g.index for g in checked.off_plan],
            },
        }

    table = tables[choice(request.GET, "panel", tables, "windows")]
    return page(request, "skills/masks.html", context, data, table=table)


def _found(name: str, number: int) -> tuple[Round, Curriculum]:
    rows = Curriculum.objects.select_related("round__experiment", "version")
    found = rows.filter(round__experiment__name=name, round__number=number).first()
    if found is None:
        raise Http404(f"{name} / {number}: no curriculum")
    return found.round, found


def _draw(round_: Round, curriculum: Curriculum) -> Callable[[int], Shown] | None:
    """The draw of the frozen curriculum; None where its file is not here or is another."""
    path = round_.experiment.folder / curriculum.path
    if not curriculum.path or not path.is_file():
        return None
    try:
        frozen = load_curriculum(path)
    except InputError:
        return None
    if frozen.state_id != curriculum.state_id:
        return None

    def draw(index: int) -> Shown:
        drawn = treatment(frozen, index)
        return drawn.mode, frozenset(drawn.skill_ids)

    return draw


def _titles(curriculum: Curriculum) -> dict[str, str]:
    entries = curriculum.version.entries.select_related("revision")
    return {e.revision.skill_id: e.revision.title or e.revision.skill_id for e in entries}


def _windows_table(rows: Sequence[InclusionRow], cells: Sequence[Sequence[Window]]) -> Table:
    """One line a chunk and window; the whole round is the line from the first to the last step."""
    columns = [
        Column("skill_id", _("Chunk"), "mono"),
        Column("first", _("First step"), "count"),
        Column("last", _("Last step"), "count"),
        *inclusion.columns(),
    ]
    lines: list[Mapping[str, Any]] = []
    for row, own in zip(rows, cells, strict=True):
        whole = windows(row, [(own[0].first, own[-1].last)]) if own else []
        lines += [
            {
                "skill_id": row.skill_id or "skill-free",
                "first": w.first,
                "last": w.last,
                **w.cells(),
            }
            for w in [*whole, *own]
        ]
    return Table("masks", columns, lines)


def _pairs_table(ids: Sequence[str], pairs: Sequence[Sequence[Pair]]) -> Table:
    columns = [
        Column("a", _("Chunk"), "mono"),
        Column("b", _("and"), "mono"),
        Column("shown", _("Groups with both"), "count"),
        Column("n", _("Assisted groups"), "count"),
        Column("rate", _("Observed"), "rate"),
        Column("expected", _("Expected groups"), "number"),
        Column("z", "z", "number"),
    ]
    return Table(
        "pairs",
        columns,
        [
            {
                "a": a, "b": ids[k], "shown": p.shown, "n": p.n, "rate": p.rate,
                "expected": p.expected, "z": p.z,
            }
            for i, a in enumerate(ids)
            for k, p in enumerate(pairs[i][: i + 1])
        ],
    )  # fmt: skip
