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


LINES = """() => {
  const texts = document.createTreeWalker(document.querySelector(".wanted"), NodeFilter.SHOW_TEXT);
  const lines = [];
  while (texts.nextNode()) {
    if (!/\\d{12}/.test(texts.currentNode.data)) continue;
    const range = document.createRange();
    range.selectNode(texts.currentNode);
    lines.push(new Set([...range.getClientRects()].map(box => Math.round(box.bottom))).size);
  }
  return lines;
}"""
HIDDEN = """() => {
  const table = document.querySelector(".wanted");
  return table.scrollWidth - table.parentElement.clientWidth;
}"""


def test_the_ids_of_what_was_bought_and_wanted_stay_in_one_line(made: Made, visit: Any) -> None:
    one, other = Episode.objects.filter(purpose="train", group_index=0, step=1).order_by("pk")[:2]
    for width in (390, 768, 1024, 1440, 1920):
        visitor = visit(width=width)
        for query, ids in ((f"?with={other.pk}", 3), ("", 2)):
            page = visitor.open(f"/episodes/{one.pk}/{query}")
            assert page.evaluate(LINES) == [1] * ids, (width, query)
            assert page.evaluate(HIDDEN) <= 0, (width, query)
        assert visitor.overflow() == 0
