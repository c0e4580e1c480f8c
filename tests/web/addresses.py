"""Every page that the URLconf knows, at an address that exists: none can be forgotten.

A new route is opened with the values below; where they do not fit it, ``pages`` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.experiments.models import Sweep
from intraskill_web.monitoring.models import Channel
from intraskill_web.review.models import Override
from intraskill_web.review.overriding import choices, make_override
from tests.web.factories import Made
from trainer.files import write_text

OTHERS = {"admin", "django_rq"}  # whose pages are not ours
NOT_HERE = {
    "reports:preview": "a file of an export; e2e/test_report.py opens the pages of one from disk",
    "reports:download": "an archive",
    "episodes:follow": "an engine must be at work",
    "episodes:replayed": "a replay must have been played",
    "gates:tasks": "a gate with its documents, which test_gate_detail.py writes",
    "skills:bank_file": "a file",
    "skills:markdown_file": "a file",
    "set_language": "a form",
}
# What these show depends on more than the route.
VARIANTS = [
    "/episodes/?experiment=demo&purpose=train",
    "/experiments/demo/rounds/1/",
    "/experiments/demo/rounds/1/gate/",
    "/experiments/demo/rounds/0/panels/inclusion/",
]
CARD = '{"card_id": "card-1", "source_trajectory_id": "group-1-retry", "status": "NO_PROPOSAL"}\n'


def pages(made: Made, client: Client) -> list[str]:
    """Paths that answer GET with a page of HTML, as ``client`` sees them.

    Routes that only take forms or answer with data are left out. Fails for a route that the
    values below do not fit, and names it.
    """
    found, lost = list(VARIANTS), []
    known = values(made)
    for name, parameters in _routes(get_resolver().url_patterns, ""):
        if name in NOT_HERE:
            continue
        chosen = {p: known.get(f"{name} {p}", known.get(p)) for p in parameters}
        if None in chosen.values():
            lost.append(f"{name}: {chosen}")
            continue
        path = reverse(name, kwargs=chosen)
        answer = client.get(path)
        if answer.status_code in (204, 405):  # data, or a form's address
            continue
        if answer.status_code != 200:
            lost.append(f"{name}: {path} answers {answer.status_code}")
        elif answer.streaming:
            list(answer)  # its end closes the file; close() would end the database's connection too
        elif b"<html" in answer.content:
            found.append(path)
    assert not lost, "name values for these routes in tests/web/addresses.py: " + "; ".join(lost)
    return found


def _routes(patterns: Any, namespace: str) -> Iterator[tuple[str, list[str]]]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield namespace + str(pattern.name), list(pattern.pattern.converters)
        elif pattern.namespace not in OTHERS:
            inside = f"{pattern.namespace}:" if pattern.namespace else namespace
            yield from _routes(pattern.url_patterns, inside)


def values(made: Made) -> dict[str, Any]:
    """Values of parameters; ``"route parameter"`` goes before the bare name of the parameter."""
    base = made.experiment.skill_versions.get(number=1)
    kept = [choice.key for choice in choices(base) if choice.kept]
    override = Override.objects.first() or make_override(base, kept[1:], "Enough", actor=None)
    channel, _ = Channel.objects.get_or_create(kind="email", target="ops@example.org")
    Sweep.objects.get_or_create(name="seeds")
    write_text(made.rounds[0].folder / "analysis" / "failure_cards.jsonl", CARD)
    episode = Episode.objects.filter(purpose="train", skill_count__gte=2).order_by("pk")[0]
    replay, _ = Replay.objects.get_or_create(
        episode=episode, checkpoint="none", n=2, state="failed"
    )
    attempt = made.attempts[0].pk
    return {
        "name": made.experiment.name,
        "number": 0,
        "kind": "train",
        "key": "outcome",
        "skill_id": "brand-first",
        "card_id": "card-1",
        "pk": episode.pk,
        "replay_pk": replay.pk,
        "action": "start",
        "turn": 1,
        "file": "train.yaml",
        "order": "order-000",
        "path": "index.html",
        "folder": "train",
        "round_pk": made.rounds[1].pk,
        "core:definition key": "contribution",
        "experiments:sweep name": "seeds",
        "experiments:attempt pk": attempt,
        "experiments:log pk": attempt,
        "experiments:log_file pk": attempt,
        "skills:version number": 1,
        "review:override_form number": 1,
        "review:override pk": override.pk,
        "review:override_bank pk": override.pk,
        "episodes:export kind": "csv",
        "monitoring:new_channel kind": "email",
        "monitoring:channel pk": channel.pk,
    }
