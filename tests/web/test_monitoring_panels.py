"""The panels of a round: earlier rounds pale, empty states in words, columns of like height."""

from __future__ import annotations

from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round, Stage
from intraskill_web.experiments.round_page import load_data
from intraskill_web.monitoring.models import MetricPoint, Preflight, UpdatePoint
from intraskill_web.monitoring.panels.frontier import frontier
from intraskill_web.monitoring.series import PREFIX
from intraskill_web.skills.models import Curriculum
from tests.web.factories import STEPS, Made
from tests.web.html import Page


def log(round_: Round, name: str, step: int, value: float) -> None:
    MetricPoint.objects.create(
        experiment=round_.experiment, round=round_, name=PREFIX + name, step=step, value=value
    )


def test_groups_that_failed_whole_before_this_round_are_drawn_pale(made: Made) -> None:
    first = made.rounds[0]
    for step in (1, 2):
        log(first, "triaged_group_count", step, 8)
        log(first, "pending_analysis_rate", step, 0.25)
        log(first, "internalization_deficit_rate", step, 0.125)
    panel = frontier(load_data(made.rounds[1]))
    assert (panel.facts["earlier_wrong"], panel.facts["earlier_groups"]) == (6, 16)
    assert panel.chart is not None
    assert panel.chart.count('class="b1 old"') == panel.chart.count('class="b2 old"') == 2
    assert "Step 1: 2 all wrong, retry failed" in panel.chart
    assert "step=1" in panel.chart
    assert next(row["step"] for row in panel.table.rows) == STEPS + 1  # the twin is of this round


def test_a_round_without_a_failed_group_says_so_instead_of_drawing_bare_axes(
    made: Made, viewer_client: Client
) -> None:
    round_ = made.rounds[1]
    Episode.objects.filter(round=round_, purpose="train").update(triage="not_frontier")
    assert frontier(load_data(round_)).chart is None
    text = " ".join(viewer_client.get("/experiments/demo/rounds/1/").content.decode().split())
    assert "None of 56 groups has failed whole." in text


def test_inclusion_is_shown_cumulative_or_of_the_last_twenty_steps(
    made: Made, viewer_client: Client
) -> None:
    MetricPoint.objects.filter(round=made.rounds[1]).delete()
    for step in range(STEPS + 1, 31):
        log(made.rounds[0], "group_count", step, 8)
    page = "/experiments/demo/rounds/0/"
    groups = {
        query: viewer_client.get(f"{page}{query}").json()["panels"]["inclusion"][0]["n"]
        for query in ("?format=json", "?format=json&window=last")
    }
    assert groups == {"?format=json": 30 * 8, "?format=json&window=last": 20 * 8}
    links = Page(viewer_client.get(page).content.decode()).links
    assert (f"{page}#p2", "Cumulative") in links
    assert (f"{page}?window=last#p2", "Last 20 steps") in links


def test_the_log_of_a_round_shows_what_warns_alone(made: Made, viewer_client: Client) -> None:
    page = "/experiments/demo/rounds/1/"
    links = Page(viewer_client.get(f"{page}?window=last").content.decode()).links
    for level in ("info", "warn", "error"):
        assert (f"?window=last&level={level}#log", level) in links
    shown = viewer_client.get(f"{page}?level=warn")
    found = [line.level for line in shown.context["log"].lines]
    assert found and set(found) == {"warn"}
    assert "?level=warn" in shown.content.decode(), "what follows is filtered too"
    assert viewer_client.get(f"{page}?level=loud").status_code == 400
    whole = viewer_client.get(page)
    assert whole["ETag"] != shown["ETag"]


def test_a_round_tells_its_updates_and_the_preflight_that_let_it_begin(
    made: Made, viewer_client: Client
) -> None:
    checks = [{"name": f"check {n}", "state": "passed", "detail": ""} for n in range(14)]
    checks[3]["state"] = "warning"
    Preflight.objects.create(target="demo/round-001", key="k", ready=True, checks=checks)
    newest = UpdatePoint.objects.filter(round=made.rounds[1]).order_by("-update")[0]
    text = " ".join(viewer_client.get("/experiments/demo/rounds/1/").content.decode().split())
    assert "preflight 13 of 14" in text
    assert f"rollout step, {newest.update} updates" in text
    first = viewer_client.get("/experiments/demo/rounds/0/").content.decode()
    assert "preflight" not in Page(first).text


def test_the_flow_goes_on_to_cards_once_they_were_made(made: Made, viewer_client: Client) -> None:
    path = "/experiments/demo/rounds/0/"
    assert "eligible" not in viewer_client.get(path).content.decode()
    Stage.objects.filter(round=made.rounds[0], kind="analyse").update(
        outcome={"triage_groups": 20, "analyzed_cards": 19, "eligible_cards": 6,
                 "triggers": {"all_wrong": 2, "low_mean": 18}}
    )  # fmt: skip
    text = " ".join(Page(viewer_client.get(path).content.decode()).text.split())
    assert (
        "20 groups analysed (retry failed too 2, rarely succeeded 18) → 19 cards → 6 eligible"
        in text
    )


def test_with_few_chunks_the_gate_stands_under_the_health(
    made: Made, viewer_client: Client
) -> None:
    path = "/experiments/demo/rounds/0/"
    many = viewer_client.get(path).content.decode()
    assert many.index('id="r-gate"') < many.index('id="r-inclusion"')
    curriculum = Curriculum.objects.get(round=made.rounds[0])
    curriculum.chunks = curriculum.chunks[:2]
    curriculum.save()
    few = viewer_client.get(path).content.decode()
    assert few.index('id="r-health"') < few.index('id="r-gate"')
    assert few.count('id="r-gate"') == 1


def test_updates_are_an_axis_of_their_own(made: Made, viewer_client: Client) -> None:
    data = viewer_client.get("/experiments/demo/series/?axis=update&metric=loss").json()
    assert data["axis"] == "update"
    assert len(data["series"][0]["x"]) == 2 * (STEPS + STEPS * 3 // 5)
    steps = viewer_client.get("/experiments/demo/series/?axis=step&metric=loss&format=json")
    assert steps.status_code == 400 and "loss is not one of" in steps.json()["error"]
    assert "?axis=update" in viewer_client.get("/experiments/demo/rounds/1/").content.decode()
