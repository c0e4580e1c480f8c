"""An episode turn by turn while it is played: one page and one poll for whoever plays it.

The page asks each second for what is new (``?part=live&from=n``). It answers 304 until something
is: turns from ``n`` on, and with ``from=0``, by a page that has none yet, also the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from intraskill_web.core import live as polling
from intraskill_web.core.parameters import whole
from intraskill_web.core.twin import page
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.reading import reading

State = Literal["running", "ended", "recorded", "waiting", "stopped"]
FINAL = ("recorded", "stopped")


@dataclass(frozen=True, slots=True)
class Look:
    """What can be seen of an episode now.

    ``recorded`` is the address of its page once its trace is published, ``shown`` what the page
    says beside turns and state, such as where it belongs.
    """

    episode: Episode
    trace: dict[str, Any]
    state: State
    recorded: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)

    def context(self, first: int) -> dict[str, Any]:
        """Turns from ``first`` on, or (0) the last window of them."""
        context = reading(self.episode, self.trace, turn=first or max(1, self.episode.turns))
        for name in ("turns", "outline"):
            context[name] = [turn for turn in context[name] if turn.index >= first]
        over = self.state in ("ended", "recorded")
        return context | {
            "section": "episodes",
            "state": self.state,
            "recorded": self.recorded,
            "whole": first == 0,
            "ending": ending(self.episode) if over else None,
            **self.shown,
        }


def follow(request: HttpRequest, look: Look, facts: Iterable[object]) -> HttpResponse:
    """The page, its twin, or what a poll asks for; ``facts`` change whenever the turns do."""
    first = whole(request.GET, "from")
    tag = polling.etag(request, (look.state, look.recorded, *facts, first))
    active = look.state not in FINAL
    unchanged = polling.unchanged(request, tag)
    if unchanged is not None:
        return polling.finish(unchanged, tag, active=active)
    if polling.is_poll(request):
        answer = render(request, "episodes/_playing_news.html", look.context(first))
    else:
        data = {"state": look.state, "trace": look.trace}
        answer = page(request, "episodes/playing.html", look.context(0), lambda: data)
    return polling.finish(answer, tag, active=active)
