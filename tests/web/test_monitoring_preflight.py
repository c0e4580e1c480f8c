"""The checklist before a round: the trainer's own checks with numbers, red items that hold a start,
reports that count only for the inputs they looked at.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.test import Client

from intraskill_web.experiments import making, services
from intraskill_web.experiments.models import Experiment, Round
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight import inputs, launches, run
from intraskill_web.monitoring.preflight.items import Item, item_of
from intraskill_web.monitoring.preflight.machine import disk_item, plan_item, workers_item
from jobs import queue
from jobs.queue import QueueStatus, WorkerInfo
from tests.web.factories import Made
from trainer.config_files import load_config
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

QUICK = Path(django_settings.BASE_DIR) / "configs" / "mini" / "quick.yaml"


@pytest.fixture
def quick(db: None, home: Path, settings: object, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The smallest real experiment, with real files, the preflight on and no queue behind it."""
    settings.INTRASKILL_PREFLIGHT = True  # type: ignore[attr-defined]
    monkeypatch.setattr(queue, "enqueue", lambda *_arguments: True)
    return making.create_experiment(load_config(QUICK, ExperimentConfig))


def state_of(items: list[Item], name: str) -> str:
    return next(item.state for item in items if item.name == name)


def test_real_inputs_pass_and_name_their_numbers(quick: Experiment) -> None:
    report = run.look(quick, 0)
    items = {check["name"]: check for check in report.checks}
    assert report.ready, report.checks
    assert {"world", "splits", "skillbank", "effects", "checkpoint", "analyst"} == items.keys()
    assert "train" in items["splits"]["detail"] and "active chunks" in items["skillbank"]["detail"]
    listed, found = run.checklist(quick)
    assert found == report
    assert state_of(listed, "plan") == state_of(listed, "disk") == "passed"


def test_a_round_starts_when_nothing_is_red_and_looks_only_once(
    quick: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.look(quick, 0)
    monkeypatch.setattr(run, "look", lambda *_arguments: pytest.fail("looked again"))
    assert services.start_round(quick).number == 0


def test_a_red_item_holds_the_start_and_says_how_to_mend_it(quick: Experiment) -> None:
    record = quick.folder / "start" / "checkpoint" / "checkpoint.json"
    document = json.loads(record.read_text())
    record.write_text(json.dumps(document | {"catalogue_sha256": "0" * 64}))
    with pytest.raises(InputError, match="preflight is red: checkpoint") as refused:
        services.start_round(quick)
    assert refused.value.remedy == "Use the checkpoint that belongs to this world"
    assert Round.objects.count() == 0
    record.write_text(json.dumps(document))  # mended: the old report counts for nothing
    assert services.start_round(quick).number == 0


def test_a_bank_that_cannot_be_read_is_red_and_what_needs_it_is_not_checked(
    quick: Experiment,
) -> None:
    (quick.folder / "start" / "skillbank.json").write_text('{"skills": 3}')
    report = run.look(quick, 0)
    states = {check["name"]: check["state"] for check in report.checks}
    assert not report.ready
    assert (states["skillbank"], states["effects"]) == ("failed", "skipped")


def test_a_later_round_looks_at_what_the_gate_selected(quick: Experiment) -> None:
    assert inputs.inputs_of(quick, 2) == (
        quick.folder / "round-001" / "gate" / "selected_skillbank.json",
        quick.folder / "round-001" / "train" / "checkpoint",
    )
    report = run.look(quick, 1)  # no round has run
    assert not report.ready
    assert "selected_skillbank.json" in json.dumps(report.checks)


def test_a_folder_without_its_settings_is_one_red_item(quick: Experiment) -> None:
    (quick.folder / "experiment.json").unlink()
    (item,) = run.look(quick, 0).checks
    assert (item["name"], item["state"]) == ("configuration", "failed")


def test_the_page_sets_the_checks_going_and_shows_them(
    quick: Experiment, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(run, "kick", lambda name, _action: asked.append(name))
    path = "/experiments/quick/preflight/"
    assert "the inputs were not checked yet" in operator_client.get(path).content.decode()
    assert asked == ["quick/round-000"]
    run.look(quick, 0)
    page = operator_client.get(path).content.decode()
    assert "World and catalogue" in page and "ready" in page
    assert asked == ["quick/round-000"]
    data = operator_client.get(path + "?format=json").json()
    assert data["ready"] is True
    assert {"plan", "disk", "queue", "workers", "world"} <= {c["name"] for c in data["checks"]}
    operator_client.post(path + "check/")
    assert Preflight.objects.count() == 0 and len(asked) == 2


def test_a_viewer_reads_the_checklist_and_starts_nothing(
    quick: Experiment, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "kick", lambda *_arguments: pytest.fail("a viewer started checks"))
    assert viewer_client.get("/experiments/quick/preflight/").status_code == 200
    assert viewer_client.post("/experiments/quick/preflight/check/").status_code == 403
    assert viewer_client.post("/preflight/slime/x.yaml/check/").status_code == 403


@pytest.mark.parametrize("path", ["/experiments/quick/", "/experiments/quick/rounds/0/"])
def test_who_may_start_a_round_finds_it_looked_at(
    quick: Experiment,
    path: str,
    operator_client: Client,
    viewer_client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = int("rounds" in path)
    if number:
        Round.objects.create(experiment=quick, number=0, state="succeeded")
        Experiment.objects.update(rounds_planned=2)
    kicked: list[Callable[[], object]] = []
    looks: list[Path] = []

    def trainer(file: Path) -> list[Item]:
        looks.append(file)
        return [Item("world", "passed", "")]

    monkeypatch.setattr(run, "kick", lambda _name, action: kicked.append(action))
    monkeypatch.setattr(run, "_trainer", trainer)
    viewer_client.get(path)
    operator_client.get(path + "?format=json")
    operator_client.get(path + "?part=live")
    assert kicked == []
    page = operator_client.get(path).content.decode()
    assert 'data-busy="Checking what the round will read' in page
    operator_client.get(path)
    for action in kicked:
        action()
    assert (len(kicked), len(looks)) == (2, 1), "what is known is not looked at again"
    operator_client.post("/experiments/quick/actions/start/")
    assert (quick.rounds.count(), len(looks)) == (number + 1, 1), "the start does not wait"


def test_a_page_without_a_start_looks_at_nothing(
    quick: Experiment, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "kick", lambda *_arguments: pytest.fail("looked"))
    Round.objects.create(experiment=quick, number=0, state="succeeded")  # the only one planned
    assert operator_client.get("/experiments/quick/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_start_during_a_look_reads_what_that_look_finds(
    quick: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def slow(_file: Path) -> list[Item]:
        looks.append(1)
        time.sleep(0.3)
        return [Item("world", "passed", "")]

    monkeypatch.setattr(run, "_trainer", slow)
    run.look_ahead(quick, 0)
    assert services.start_round(quick).number == 0
    assert looks == [1]


def test_the_page_of_a_red_round_says_what_to_do(quick: Experiment, viewer_client: Client) -> None:
    (quick.folder / "start" / "skillbank.json").unlink()
    run.look(quick, 0)
    page = viewer_client.get("/experiments/quick/preflight/").content.decode()
    assert "1 red: a round cannot start" in page
    assert "To do:" in page


def test_the_plan_shows_its_arithmetic(made: Made) -> None:
    config = {
        "train": {
            "steps": 20,
            "rollout": {"groups_per_wave": 32, "groups_kept": 16, "episodes_per_group": 8},
            "optimiser": {"updates_per_step": 2},
        }
    }
    item = plan_item(config, 1, 4)
    assert item.state == "passed"
    assert "20 steps × 32 groups × 8 episodes = 5,120" in item.detail
    assert "128 kept a step for 2 updates of 64" in item.detail
    beyond = plan_item(config, 4, 4)
    assert beyond.state == "failed" and beyond.detail.startswith("round 4, 5 of 4:")


def test_disk_is_judged_by_what_the_round_before_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "round-000").mkdir()
    (tmp_path / "round-000" / "weights").write_bytes(b"0" * 3 * 2**20)
    assert disk_item(tmp_path, 1).state == "passed"
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=2**30))
    item = disk_item(tmp_path, 1)
    assert (item.state, item.remedy) == ("failed", "Free at least 1.0 GiB.")
    assert "the round before took 3.0 MiB" in item.detail


def test_no_worker_is_a_warning_because_a_start_only_waits() -> None:
    item = workers_item(QueueStatus(up=True, waiting=0, workers=()))
    assert (item.state, item.red) == ("warning", False)


def test_a_worker_for_replays_is_none_for_stages() -> None:
    side = WorkerInfo("a", "gpu-07", 1, "idle", None, None, ("work",))
    item = workers_item(QueueStatus(up=True, waiting=0, workers=(side,)))
    assert (item.state, item.detail) == ("warning", "none for stages")
    both = replace(side, host="gpu-08", kinds=("gpu", "cpu"))
    item = workers_item(QueueStatus(up=True, waiting=0, workers=(side, both)))
    assert (item.state, item.detail) == ("passed", "1 on gpu-08")


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ({"name": "a", "ok": True, "detail": "x"}, "passed"),
        ({"name": "a", "ok": False, "detail": "bad"}, "failed"),
        ({"name": "a", "ok": False, "detail": "not checked: needs the world"}, "skipped"),
        ({"name": "a", "ok": True, "state": "warning", "detail": "x"}, "warning"),
        ({"name": "a", "ok": False, "state": "skipped", "detail": "x"}, "skipped"),
        ({}, "failed"),
    ],
)
def test_checks_of_both_engines_become_items(record: dict[str, object], state: str) -> None:
    assert item_of(record).state == state


def test_the_checks_of_a_slime_launch_are_shown_by_name(
    db: None, viewer_client: Client, operator_client: Client
) -> None:
    (file,) = [path for path in launches.launch_files() if path.name == "train.yaml"]
    report = run.look_at_launch(file)
    names = {check["name"] for check in report.checks}
    assert not report.ready  # no slime checkout and no GPU here
    assert "slime.flags" in names and "host.disk" in names
    page = viewer_client.get("/preflight/slime/train.yaml/").content.decode()
    assert "slime.flags" in page and "SLIME_DIR" in page
    assert viewer_client.get("/preflight/slime/..%2f..%2fpasswd/").status_code == 404
    assert operator_client.post("/preflight/slime/none.yaml/check/").status_code == 404


def test_who_would_look_at_what_is_looked_at_waits_and_reads_that(
    quick: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody keeps a report while this one waits for its turn."""
    looks: list[str] = []

    @contextmanager
    def waits(key: str) -> Iterator[None]:
        looks.append(key)
        run._keep("another/round-000", key, [], 0.1)
        yield

    monkeypatch.setattr(run, "alone", waits)
    monkeypatch.setattr(run, "look", lambda *_arguments: pytest.fail("looked too"))
    run.require_ready(quick)
    assert looks == [inputs.key_of(quick, 0)]


def test_work_beside_a_page_is_not_doubled() -> None:
    done: list[int] = []

    def slow() -> None:
        time.sleep(0.2)
        done.append(1)

    run.kick("one", slow)
    run.kick("one", slow)
    assert run.under_way("one")
    deadline = time.monotonic() + 5
    while run.under_way("one") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert done == [1]
