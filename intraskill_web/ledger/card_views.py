"""The failure cards of a round: the list, and one card with its privileged part set apart."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core import audit
from intraskill_web.core.access import actor_of
from intraskill_web.core.parameters import choice
from intraskill_web.core.text import storable
from intraskill_web.core.twin import asks_json, page
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round
from intraskill_web.experiments.round_view import crumbs
from intraskill_web.ledger.cards import Card, cards, counts, table, triggers
from intraskill_web.ledger.models import SEE_PRIVILEGED, Candidate


@require_safe
def card_list(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """``?status=``: the cards of a round, what they propose and what became of it."""
    round_ = _round(name, number)
    found = cards(round_)
    status = choice(request.GET, "status", sorted({c.status for c in found or []}))
    shown = [c for c in found or [] if not status or c.status == status]
    rows = table(shown)
    context = {
        "section": "ledger",
        "round": round_,
        "known": found is not None,
        "cards": shown,
        "counts": counts(found or []),
        "total": len(found or []),
        "triggers": triggers(shown),
        "status": status,
        "used": _used(round_),
        "crumbs": crumbs(round_, (_("Cards"), "")),
    }
    data = {"known": found is not None, "triggers": triggers(shown), "cards": rows.data()}
    return page(request, "ledger/cards.html", context, lambda: data, table=rows)


@require_safe
def card_detail(request: HttpRequest, name: str, number: int, card_id: str) -> HttpResponse:
    """One card; ``?format=json&privileged=1`` adds the privileged part for who may see it."""
    round_ = _round(name, number)
    card = next((c for c in cards(round_) or [] if c.id == card_id), None)
    if card is None:
        raise Http404(card_id)
    allowed = request.user.has_perm(SEE_PRIVILEGED)
    asked = request.GET.get("privileged") == "1"
    seen = allowed and (asked or not asks_json(request))
    if seen:
        audit.record(
            "card.privileged", actor=actor_of(request), experiment=name, subject=card.id[:200]
        )
    context = {
        "section": "ledger",
        "round": round_,
        "card": card,
        "allowed": allowed,
        "episode": _episode(round_, card),
        "candidates": _used(round_).get(card.id, []),
        "crumbs": [
            *crumbs(round_, (_("Cards"), reverse("ledger:cards", args=[name, number]))),
            (card.id, ""),
        ],
    }
    return page(request, "ledger/card.html", context, lambda: card.data(privileged=seen and asked))


def _round(name: str, number: int) -> Round:
    rows = Round.objects.select_related("experiment")
    found = rows.filter(experiment__name=name, number=number).first()
    if found is None:
        raise Http404(f"{name} / {number}")
    return found


def _used(round_: Round) -> dict[str, list[Candidate]]:
    """The candidates of the round by the cards they were compiled from: one query."""
    used: dict[str, list[Candidate]] = {}
    for candidate in Candidate.objects.filter(round=round_):
        for card_id in candidate.source_card_ids:
            used.setdefault(card_id, []).append(candidate)
    return used


def _episode(round_: Round, card: Card) -> Any:
    rows = Episode.objects.filter(experiment=round_.experiment, round=round_)
    return rows.filter(episode_id=storable(card.source)).only("pk").first()
