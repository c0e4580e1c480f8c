"""An emptied database begins its ids anew: no term of former episodes may be left for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from intraskill_web.episodes.emptied import forget_terms
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.prepare import prepare
from intraskill_web.episodes.publish import publish
from intraskill_web.experiments.models import Experiment
from tests.web.traces import make_trace


@pytest.fixture(autouse=True)
def own(transactional_db: None, home: Path) -> None:
    """A database that commits, and a home for bodies."""


MADE: set[str] = set()  # every term that was written


def say(text: str) -> int:
    """Publish an episode in which this is said; its id."""
    experiment, _made = Experiment.objects.get_or_create(name="said")
    trace = make_trace("e", 1, 0, [], instruction="buy", content=text)
    entry = prepare(json.dumps(trace).encode(), purpose="bare", arm="bare", groups={})
    entry.values["line"] = Episode.objects.count()
    publish([entry], {"experiment_id": experiment.pk, "round_id": None, "path": "f"})
    MADE.update(entry.terms.split())
    return int(Episode.objects.order_by("-pk").values_list("pk", flat=True)[0])


def terms() -> int:
    """How many of them lead anywhere."""
    where = "episodes_search MATCH" if connection.vendor == "sqlite" else "term ="
    found = 0
    with connection.cursor() as cursor:
        for term in MADE:
            asked = f'"{term}"' if connection.vendor == "sqlite" else term
            cursor.execute(
                f"SELECT EXISTS (SELECT 1 FROM episodes_search WHERE {where} %s)", [asked]
            )
            found += bool(cursor.fetchone()[0])
    return found


def test_a_flush_leaves_no_terms_to_the_episodes_that_come_after_it() -> None:
    call_command("flush", interactive=False, verbosity=0)  # tests before this one used ids
    former = say("便携水杯 waterproof")
    assert terms() > 0
    call_command("flush", interactive=False, verbosity=0)
    assert terms() == 0
    assert say("teapot") == former, "ids begin anew, so these terms would be of this one"
    assert terms() > 0


def test_what_is_said_after_a_flush_is_found(client: Client, django_user_model: type) -> None:
    say("waterproof")
    call_command("flush", interactive=False, verbosity=0)
    say("teapot")
    client.force_login(django_user_model.objects.create_user("ann"))  # type: ignore[attr-defined]
    for text, count in (("teapot", 1), ("waterproof", 0)):
        answer = client.get("/episodes/", {"q": text, "format": "json"}).json()
        assert len(answer["results"]) == count


def test_a_migration_of_a_database_with_episodes_keeps_their_terms() -> None:
    say("便携水杯")
    before = terms()
    call_command("migrate", verbosity=0)
    forget_terms(using="default")
    assert terms() == before > 0


def test_rows_that_were_deleted_with_no_flush_lose_their_terms_at_the_next_migration() -> None:
    say("便携水杯")
    Episode.objects.all().delete()
    call_command("migrate", verbosity=0)
    assert terms() == 0
