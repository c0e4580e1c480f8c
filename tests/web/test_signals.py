"""Signals: each rule on numbers that meet it and that do not; one row an onset; words in both
languages.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone, translation

from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.gates.models import GateRun
from intraskill_web.monitoring.inclusion import StepCount, inclusion_rows
from intraskill_web.monitoring.models import MetricPoint, SignalEvent
from intraskill_web.monitoring.panels.base import RoundData
from intraskill_web.monitoring.rollouts import Rollouts
from intraskill_web.monitoring.series import PREFIX, Series
from intraskill_web.monitoring.signals.evaluate import evaluate, evaluate_all, watched_rounds
from intraskill_web.monitoring.signals.facts import Facts, Finding
from intraskill_web.monitoring.signals.rules import findings
from intraskill_web.monitoring.signals.strip import round_signals
from intraskill_web.monitoring.signals.training import lasting, rises
from intraskill_web.monitoring.signals.words import WORDS, Place, words
from tests.web.factories import Made


def facts_of(series: dict[str, list[float]], **more: object) -> Facts:
    """Facts of a round whose metrics at steps 1, 2, … are ``series``."""
    values = {name: dict(enumerate(points, 1)) for name, points in series.items()}
    round_ = Round(number=0, experiment=Experiment(name="x"))
    data = RoundData(round_, 1, 20, Series(values), Series(), Rollouts(()))
    rows = inclusion_rows(data.series, 0.2, {"c": 0.5})
    return Facts(data, rows, more.pop("stages", []), [], **more)  # type: ignore[arg-type]


def kinds(facts: Facts) -> list[str]:
    return [item.kind for item in findings(facts)]


def test_a_quiet_round_has_no_finding() -> None:
    groups = [8.0] * 12
    assert kinds(facts_of({
        "scored_rate": [1.0] * 12, "trajectory_count": [32.0] * 12, "group_count": groups,
        "skill_free_group_rate": [0.25] * 12, "chunk/c/inclusion_rate": [0.5] * 12,
        "all_wrong_group_rate": [0.125] * 12, "scored_group_count": groups,
    })) == []  # fmt: skip


def test_a_missing_score_in_the_last_steps_is_a_finding_and_an_old_one_is_not() -> None:
    new = facts_of({"scored_rate": [1.0, 1.0, 0.75], "trajectory_count": [32.0] * 3})
    (found,) = findings(new)
    assert (found.kind, found.facts["missing"], found.facts["n"]) == ("unscored", 8, 32)
    old = facts_of({"scored_rate": [0.75, 1.0, 1.0, 1.0], "trajectory_count": [32.0] * 4})
    assert kinds(old) == []


def test_technical_drops_count_in_the_last_steps() -> None:
    series = {"group_count": [8.0] * 4, "technical_group_drop_count": [0.0, 3.0, 0.0, 2.0]}
    (found,) = findings(facts_of(series))
    assert (found.kind, found.facts) == ("technical", {"groups": 5, "step": 4})


def test_the_strip_says_of_inclusion_what_the_panel_says_of_its_rows() -> None:
    steady = {"group_count": [32.0] * 3, "skill_free_group_rate": [0.25] * 3}
    inside = facts_of(steady | {"chunk/c/inclusion_rate": [0.5, 0.5, 0.5]})
    late = facts_of(steady | {"chunk/c/inclusion_rate": [0.5, 0.5, 0.0]})  # outside, but just now
    assert [row.verdict for row in late.rows if row.skill_id == "c"] == ["below"]
    said = [
        [signal.detail for signal in round_signals(facts) if signal.kind == "inclusion"]
        for facts in (inside, late)
    ]
    assert said == [["in band"], ["1 of 2 outside its band, none for 3 steps"]]


@pytest.mark.parametrize(("rate", "side"), [(0.05, "below"), (0.95, "above")])
def test_inclusion_outside_its_band_for_three_steps_is_a_finding(rate: float, side: str) -> None:
    facts = facts_of({"group_count": [32.0] * 5, "skill_free_group_rate": [0.2] * 5,
                      "chunk/c/inclusion_rate": [rate] * 5})  # fmt: skip
    (found,) = findings(facts)
    assert (found.kind, found.subject, found.facts["side"]) == ("inclusion", "c", side)
    assert found.facts["low"] < 0.5 < found.facts["high"]


def test_two_steps_outside_the_band_are_chance() -> None:
    outside = [StepCount(1, 10, 20), StepCount(2, 0, 20), StepCount(3, 0, 20)]
    assert lasting(outside, 0.5) == ""
    assert lasting([*outside, StepCount(4, 0, 20)], 0.5) == "below"


def test_the_skill_free_rate_is_judged_against_q() -> None:
    facts = facts_of({"group_count": [32.0] * 4, "skill_free_group_rate": [0.75] * 4})
    (found,) = findings(facts)
    assert (found.kind, found.facts["side"], found.facts["target"]) == ("skill_free", "above", 0.2)


def test_all_wrong_that_rises_while_retries_succeed_is_a_finding() -> None:
    rising = {"all_wrong_group_rate": [0.125] * 5 + [0.5] * 5, "scored_group_count": [32.0] * 10}
    saved = {"full_skill_retry_success_rate": [0.75] * 10, "full_skill_retry_count": [4.0] * 10}
    failed = {"full_skill_retry_success_rate": [0.25] * 10, "full_skill_retry_count": [4.0] * 10}
    (found,) = findings(facts_of(rising | saved))
    assert (found.kind, found.facts["saved"], found.facts["tried"]) == ("internalisation", 15, 20)
    assert kinds(facts_of(rising | failed)) == []
    level = {"all_wrong_group_rate": [0.25] * 10, "scored_group_count": [32.0] * 10}
    assert kinds(facts_of(level | saved)) == []


@pytest.mark.parametrize(("eligible", "wanted"), [(0, ["pending"]), (2, []), (None, [])])
def test_pending_that_rises_is_a_finding_only_without_eligible_cards(
    eligible: int | None, wanted: list[str]
) -> None:
    series = {"pending_analysis_rate": [0.0] * 5 + [0.25] * 5, "triaged_group_count": [32.0] * 10}
    assert kinds(facts_of(series, eligible=eligible)) == wanted


def test_a_rise_must_be_larger_than_chance() -> None:
    assert rises((4, 100), (20, 100))
    assert not rises((4, 100), (6, 100))
    assert not rises((20, 100), (4, 100))
    assert not rises((0, 0), (5, 10))


def test_no_step_for_three_times_the_median_is_a_finding_only_while_training_runs() -> None:
    stage = Stage(kind="train", state="running", updated_at=timezone.now() - timedelta(minutes=31))
    slow = {"perf/step_time": [600.0] * 4}
    (found,) = findings(facts_of(slow, stages=[stage]))
    assert (found.kind, found.facts["median"], found.moment) == ("stalled", 600.0, stage.updated_at)
    stage.updated_at = timezone.now() - timedelta(minutes=29)
    assert kinds(facts_of(slow, stages=[stage])) == []
    stage.updated_at, stage.state = timezone.now() - timedelta(hours=3), "stopped"
    assert kinds(facts_of(slow, stages=[stage])) == []


def test_in_its_first_steps_a_round_is_judged_by_the_steps_of_the_rounds_before(made: Made) -> None:
    round_, name = made.rounds[1], "perf/step_time"
    MetricPoint.objects.filter(round=round_, name=name).delete()
    stage = round_.stages.filter(kind="train")
    stage.update(state="running", updated_at=timezone.now() - timedelta(minutes=5))
    assert "stalled" in {event.kind for event in evaluate(round_)}
    points = [
        MetricPoint(experiment=made.experiment, round=round_, name=name, step=step, value=200)
        for step in (13, 14, 15)
    ]
    MetricPoint.objects.bulk_create(points[:2])
    evaluate(round_)
    assert "stalled" in open_now(round_), "the earlier ones prevail"
    points[2].save()
    evaluate(round_)
    assert "stalled" not in open_now(round_), "slow steps are how this round is"
    MetricPoint.objects.filter(name=name).exclude(step__in=(13, 14)).delete()
    stage.update(updated_at=timezone.now() - timedelta(days=1))
    evaluate(round_)
    assert "stalled" not in open_now(round_), "two steps of the whole experiment say nothing"


def test_a_gate_is_ready_for_review_and_says_when_pairs_are_missing() -> None:
    gate = GateRun(status="complete", observations=40, requested=40, delta_mean=0.02)
    assert [(i.kind, i.level) for i in findings(facts_of({}, gate=gate))] == [("gate", "info")]
    gate.observations, gate.status = 39, "incomplete"
    assert kinds(facts_of({}, gate=gate)) == ["coverage"]


def test_every_kind_has_words_in_both_languages() -> None:
    place = Place("x", 0)
    numbers = {
        "stage": "train", "state": "failed", "rate": 0.5, "n": 4, "missing": 2, "step": 3,
        "groups": 2, "side": "below", "title": "T", "observed": 0.1, "target": 0.2, "low": 0.1,
        "high": 0.3, "shown": 3, "before": 0.1, "after": 0.3, "saved": 3, "tried": 4,
        "median": 60.0, "used": 3, "planned": 4, "delta": 0.1, "pairs": 4, "number": 1,
        "reason": "red", "host": "gpu-1", "attempt": 1,
    }  # fmt: skip
    for kind in WORDS:
        english = words(kind, "s", numbers, place)
        with translation.override("zh-hans"):
            chinese = words(kind, "s", numbers, place)
        assert english.title and english.href and english.link
        assert chinese.link != english.link
    assert words("from-a-newer-version", "s", {}, place).title == "from-a-newer-version s"


# --- the inbox ---------------------------------------------------------------------------------


def put(round_: Round, name: str, step: int, value: float) -> None:
    """One metric of the round at one step."""
    MetricPoint.objects.update_or_create(
        experiment=round_.experiment, name=PREFIX + name, step=step,
        defaults={"round": round_, "value": value},
    )  # fmt: skip


def last_step(round_: Round) -> int:
    point = MetricPoint.objects.filter(round=round_).order_by("-step").first()
    assert point is not None
    return point.step


def open_now(round_: Round) -> set[str]:
    return set(
        SignalEvent.objects.filter(round=round_, closed_at=None).values_list("kind", flat=True)
    )


def test_a_signal_opens_once_closes_and_opens_again_when_its_cause_comes_back(made: Made) -> None:
    round_ = made.rounds[1]
    evaluate(round_)
    assert "technical" not in open_now(round_)
    step = last_step(round_)
    put(round_, "technical_group_drop_count", step, 2)
    assert [event.kind for event in evaluate(round_)] == ["technical"]
    assert evaluate(round_) == []
    MetricPoint.objects.filter(name=PREFIX + "technical_group_drop_count").delete()
    assert evaluate(round_) == []
    assert "technical" not in open_now(round_)
    put(round_, "technical_group_drop_count", step, 1)
    assert [event.kind for event in evaluate(round_)] == ["technical"]
    assert SignalEvent.objects.filter(round=round_, kind="technical").count() == 2


def test_the_database_refuses_a_second_open_signal_of_a_kind(made: Made) -> None:
    values = {"round": made.rounds[1], "kind": "stalled", "level": "open"}
    SignalEvent.objects.create(**values)
    with pytest.raises(IntegrityError), transaction.atomic():
        SignalEvent.objects.create(**values)


def test_after_training_a_signal_of_training_is_closed_and_stays_so(made: Made) -> None:
    round_ = made.rounds[0]
    put(round_, "technical_group_drop_count", last_step(round_), 2)
    opened = {event.kind for event in evaluate(round_)}
    assert opened == {"technical", "gate"}
    assert open_now(round_) == {"gate"}
    assert evaluate(round_) == []


def test_each_failed_attempt_is_its_own_onset(made: Made) -> None:
    round_ = made.rounds[1]
    stage = round_.stages.get(kind="train")
    Stage.objects.filter(pk=stage.pk).update(state="failed", message="out of memory")
    evaluate(round_)
    event = SignalEvent.objects.get(round=round_, kind="stage")
    assert (event.subject, event.facts["message"]) == ("train/1", "out of memory")
    Attempt.objects.create(stage=stage, number=2, state="failed")
    evaluate(round_)
    assert SignalEvent.objects.filter(round=round_, kind="stage").count() == 2


def test_imported_rounds_are_not_watched(made: Made) -> None:
    assert {r.pk for r in watched_rounds()} >= {r.pk for r in made.rounds}
    Attempt.objects.filter(stage__round=made.rounds[0]).delete()
    assert made.rounds[0].pk not in {r.pk for r in watched_rounds()}


def test_a_round_that_stands_still_is_looked_at_once(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(
        "intraskill_web.monitoring.signals.evaluate.evaluate",
        lambda round_: looked.append(round_.number) or [],
    )
    seen: dict[int, object] = {}
    evaluate_all(seen)
    evaluate_all(seen)
    assert sorted(looked) == [0, 1, 1]  # round 1 trains: time alone may open a signal
    made.rounds[0].stages.get(kind="gate").save()
    evaluate_all(seen)
    assert sorted(looked) == [0, 0, 1, 1, 1]


def test_the_round_page_shows_open_signals_first_and_hides_a_seen_review(
    made: Made, viewer_client: Client
) -> None:
    round_ = made.rounds[0]
    evaluate(round_)
    path = "/experiments/demo/rounds/0/"
    assert "is ready for review" in viewer_client.get(path).content.decode()
    event = SignalEvent.objects.get(round=round_, kind="gate")
    viewer_client.post("/inbox/read/", {"id": str(event.pk), "next": path})
    assert "is ready for review" not in viewer_client.get(path).content.decode()


def test_nobody_is_asked_to_review_an_imported_gate(made: Made, viewer_client: Client) -> None:
    Attempt.objects.filter(stage__round=made.rounds[0]).delete()
    page = viewer_client.get("/experiments/demo/rounds/0/").content.decode()
    assert "is ready for review" not in page


def test_the_twin_of_a_round_names_the_kind_of_each_signal(
    made: Made, viewer_client: Client
) -> None:
    data = viewer_client.get("/experiments/demo/rounds/0/?format=json").json()
    assert "gate" in {signal["kind"] for signal in data["signals"]}
    assert all(signal["title"] for signal in data["signals"])


def test_a_finding_is_known_again_by_kind_and_subject() -> None:
    assert Finding("inclusion", "c", facts={"n": 1}).key == Finding("inclusion", "c").key
