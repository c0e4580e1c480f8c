"""The siblings of an episode keep their frames, however many samples a run has had."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from intraskill_web.episodes.models import Episode
from tests.web.factories import Made

BEYOND = """() => [...document.querySelectorAll(".sib a")].filter(frame =>
  [...frame.querySelectorAll("*")].some(inside =>
    inside.getBoundingClientRect().right > frame.getBoundingClientRect().right)).length"""


def test_samples_of_six_digits_stay_within_their_frames(made: Made, visit: Any) -> None:
    Episode.objects.update(sample_id=F("sample_id") + 123_456)
    episode = Episode.objects.filter(purpose="train").order_by("pk")[0]
    for width in (390, 1440):
        page = visit(width=width).open(f"/episodes/{episode.pk}/")
        assert page.locator(".sib a").count() > 1
        assert page.evaluate(BEYOND) == 0, width


def test_what_two_bought_has_room_for_whole_words(made: Made, visit: Any) -> None:
    one, other = Episode.objects.filter(purpose="train", group_index=0, step=1).order_by("pk")[:2]
    page = visit().open(f"/episodes/{one.pk}/?with={other.pk}")
    cells = page.locator(".wanted td")
    assert cells.count() > 0
    assert min(box["width"] for cell in cells.all() if (box := cell.bounding_box())) > 90
