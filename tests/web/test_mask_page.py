"""Masks of a round: inclusion by window, co-occurrence, one treatment a group, the drawn one."""

from __future__ import annotations

from typing import Any

from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.monitoring.inclusion import InclusionRow, StepCount
from intraskill_web.skills.mask_audit import audit, groups_of, together
from intraskill_web.skills.mask_windows import spans, windows
from intraskill_web.skills.models import Curriculum
from tests.web.factories import Made
from tests.web.html import Page
from trainer.files import write_json
from trainer.skills.bank import bank_document, parse_bank
from trainer.skills.curriculum import load_curriculum
from trainer.skills.curriculum_build import build_curriculum
from trainer.skills.masks import treatment
from trainer.skills.types import Chunk

PATH = "/experiments/demo/rounds/0/masks/"


def test_windows_add_up_to_the_whole() -> None:
    counts = [StepCount(step, step % 3, 4) for step in range(21, 33)]
    row = InclusionRow(
        skill_id="a", target=0.4, counts=counts, shown=sum(c.shown for c in counts), n=48
    )
    borders = spans([c.step for c in counts], 5)
    assert borders == [(21, 25), (26, 30), (31, 32)]
    found = windows(row, borders)
    assert sum(w.shown for w in found) == row.shown
    assert [w.n for w in found] == [20, 20, 8]


def test_a_window_is_judged_by_the_band_of_its_own_n() -> None:
    row = InclusionRow(
        skill_id="a", target=0.5, counts=[StepCount(1, 9, 10), StepCount(2, 5, 10)], shown=14, n=20
    )
    verdicts = [w.verdict for w in windows(row, [(1, 1), (2, 2), (3, 3)])]
    assert verdicts == ["above", "in", ""]


def test_siblings_that_differ_are_found() -> None:
    rows = [(1, "assisted", ["a"])] * 3 + [(2, "assisted", ["a"]), (2, "assisted", ["a", "b"])]
    found = audit(groups_of(rows))
    assert [g.index for g in found.split] == [2]
    assert not found.sound and not found.checked


def test_a_treatment_that_was_not_drawn_is_found() -> None:
    rows = [(1, "assisted", ["a"]), (2, "skill_free", [])]
    found = audit(groups_of(rows, lambda _i: ("assisted", frozenset({"a"}))))
    assert found.checked
    assert [g.index for g in found.off_plan] == [2]


def test_pairs_are_counted_over_assisted_groups() -> None:
    rows = [
        (1, "assisted", ["a", "b"]),
        (2, "assisted", ["a"]),
        (3, "assisted_empty", []),
        (4, "skill_free", []),
    ]
    square = together(groups_of(rows), {"a": 0.5, "b": 0.5})
    both = square[0][1]
    assert (both.shown, both.n, both.expected) == (1, 3, 0.75)
    assert square[0][0].shown == 2
    assert square[1][0] == both


def test_a_pair_that_is_always_together_is_shaded() -> None:
    rows = [(i, "assisted", ["a", "b"] if i % 2 else []) for i in range(200)]
    square = together(groups_of(rows), {"a": 0.5, "b": 0.5})
    assert square[0][1].heat == "p3"
    assert square[0][0].heat == "z"


def test_the_page_shows_rates_with_n_and_links(made: Made, viewer_client: Client) -> None:
    html = viewer_client.get(PATH).content.decode()
    page = Page(html)
    assert page.policy_faults() == []
    assert any("chunk=brand-first" in href for href, _t in page.links)
    assert any("treatment=skill_free" in href for href, _t in page.links)
    twin: dict[str, Any] = viewer_client.get(f"{PATH}?format=json&window=10").json()
    rows = Episode.objects.filter(round=made.rounds[0], purpose="train")
    groups = {e.group_index: e for e in rows}
    assert twin["audit"] == {
        "groups": len(groups),
        "episodes": rows.count(),
        "draw_repeated": False,
        "siblings_differ": [],
        "off_plan": [],
    }
    free, *_rest = [w for w in twin["windows"] if w["skill_id"] == "skill-free"]
    assert (free["first"], free["last"], free["n"]) == (1, 12, len(groups))
    assert free["shown"] == sum(e.treatment_mode == "skill_free" for e in groups.values())


def test_a_broken_group_is_named_and_opens(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(round=made.rounds[0], purpose="train", group_index=3)[0]
    Episode.objects.filter(pk=episode.pk).update(skill_ids=["polite"], treatment_mode="assisted")
    html = viewer_client.get(PATH).content.decode()
    assert "siblings differ in 1 of" in html
    (link,) = [href for href, text in Page(html).links if text == "group 3"]
    assert viewer_client.get(link).status_code == 200


def test_treatments_are_drawn_again_from_the_frozen_curriculum(
    made: Made, viewer_client: Client
) -> None:
    round_ = made.rounds[0]
    bank = parse_bank(
        bank_document(
            [
                Chunk("a", "A", "1", {"estimated_effect": 0.1}),
                Chunk("b", "B", "1", {"estimated_effect": 0.2}),
            ],
            bank_version="1",
            metadata={},
        )
    )
    path = round_.experiment.folder / "round-000" / "curriculum.json"
    built = build_curriculum(
        bank, round_id="round-000", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    write_json(path, built.document)
    frozen = load_curriculum(path)
    chunks = [{"skill_id": i, "rho": r, "effect": 0.1} for i, r in frozen.rho.items()]
    Curriculum.objects.filter(round=round_).update(
        state_id=frozen.state_id, path="round-000/curriculum.json", chunks=chunks
    )
    for episode in Episode.objects.filter(round=round_, purpose="train"):
        drawn = treatment(frozen, episode.group_index or 0)
        Episode.objects.filter(pk=episode.pk).update(
            treatment_mode=drawn.mode, skill_ids=list(drawn.skill_ids)
        )
    said = viewer_client.get(f"{PATH}?format=json").json()["audit"]
    assert said["draw_repeated"] and said["off_plan"] == []
    Episode.objects.filter(round=round_, purpose="train", group_index=5).update(
        treatment_mode="assisted", skill_ids=["a", "b", "c"]
    )
    assert viewer_client.get(f"{PATH}?format=json").json()["audit"]["off_plan"] == [5]


def test_a_round_without_a_curriculum_has_no_page(made: Made, viewer_client: Client) -> None:
    assert viewer_client.get("/experiments/demo/rounds/7/masks/").status_code == 404
    assert viewer_client.get(f"{PATH}?format=csv&panel=pairs").content.startswith(b"a,b,shown")


def test_it_takes_few_queries(
    made: Made, viewer_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(8):
        viewer_client.get(PATH)


def test_the_audit_says_whether_it_is_sound_in_its_own_card(
    made: Made, viewer_client: Client
) -> None:
    def parts() -> tuple[str, str]:
        html = viewer_client.get(PATH).content.decode()
        head, card = html.split('id="win"')[0], html.split('id="audit"')[1]
        return Page(head).text, Page(card).text

    head, card = parts()
    assert "Succeeded" not in head
    assert "sound" in card.split() and "unsound" not in card
    odd = Episode.objects.filter(
        round=made.rounds[0], purpose="train", treatment_mode="assisted"
    ).first()
    assert odd is not None
    odd.skill_ids = [*odd.skill_ids, "another"]
    odd.save()
    head, card = parts()
    assert "Failed" not in head
    assert "unsound" in card
