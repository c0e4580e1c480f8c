"""The queue page says who holds each host's GPUs, what waits there, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from intraskill_web.core.middleware import POLICY
from intraskill_web.experiments import actions
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import new_attempt
from intraskill_web.experiments.waiting import waiting_reason
from jobs import placement, queue
from jobs.models import Host
from jobs.queue import QueueStatus, WorkerInfo
from jobs.transitions import ACTIVE, State
from tests.web.factories import Made
from tests.web.html import Page

UP = QueueStatus(up=True, waiting=1, workers=())
GPU = {"index": 0, "name": "H100", "memory_bytes": 80 * 2**30, "used_bytes": 70 * 2**30}


@pytest.fixture
def host(made: Made) -> Host:
    """A host whose GPU the training of round 1 holds."""
    return Host.objects.create(
        name="gpu-07", gpus=[GPU], cpus=32, workers=[{"name": "w", "pid": 1}],
        free_disk_bytes=2**40, versions={"torch": "2.13.0"},
        lease=made.attempts[-1], leased_at=timezone.now(),
    )  # fmt: skip


@pytest.fixture
def waiting(made: Made) -> Attempt:
    """An attempt that no host has taken."""
    stage = Stage.objects.get(round=made.rounds[1], kind="validate")
    return Attempt.objects.create(stage=stage, number=1, state="requested")


def hosts() -> list[Host]:
    return list(Host.objects.select_related("lease__stage__round__experiment"))


def test_what_waits_for_a_held_gpu_says_who_holds_it(host: Host, waiting: Attempt) -> None:
    text = waiting_reason(waiting, UP, [waiting], hosts())
    assert text == "Waits for the GPUs of gpu-07: Train of demo holds them"
    Host.objects.update(lease=None)
    assert waiting_reason(waiting, UP, [waiting], hosts()) == "A worker takes it next"


def test_what_needs_no_gpu_waits_for_a_worker(host: Host, waiting: Attempt, made: Made) -> None:
    waiting.stage = Stage.objects.get(round=made.rounds[1], kind="analyse")
    assert waiting_reason(waiting, UP, [waiting], hosts()) == "A worker takes it next"
    works = made.attempts[-1]
    works.host = "gpu-07"
    text = waiting_reason(waiting, UP, [waiting, works], hosts())
    assert text == "Waits at gpu-07 for Train of demo"
    Host.objects.create(name="gpu-08", gpus=[GPU], workers=[{"name": "w"}])
    assert waiting_reason(waiting, UP, [waiting, works], hosts()) == "A worker takes it next"
    made.attempts[0].host, made.attempts[0].state = "gpu-08", "running"
    text = waiting_reason(waiting, UP, [waiting, works, made.attempts[0]], hosts())
    assert text.startswith("Waits for a worker; the first of 2 hosts is gpu-07, busy with Train")


def test_several_held_hosts_are_counted(host: Host, waiting: Attempt, made: Made) -> None:
    Host.objects.create(name="gpu-08", gpus=[GPU], workers=[{"name": "w"}], lease=made.attempts[0])
    text = waiting_reason(waiting, UP, [waiting], hosts())
    assert text.startswith("Waits for a GPU; the first of 2 hosts is gpu-07")


def test_a_pinned_host_that_is_down_or_unknown_is_named(host: Host, waiting: Attempt) -> None:
    experiment = waiting.stage.round.experiment
    experiment.host = "gpu-99"
    assert "gpu-99, which was never seen" in waiting_reason(waiting, UP, [waiting], hosts())
    experiment.host = "gpu-07"
    Host.objects.update(seen_at=timezone.now() - timedelta(hours=2))
    text = waiting_reason(waiting, UP, [waiting], hosts())
    assert text == "Host gpu-07 is down, last seen 2 h ago. Start manage.py worker there"


def test_without_hosts_no_worker_is_up(made: Made, waiting: Attempt) -> None:
    assert waiting_reason(waiting, UP, [waiting], []) == "No worker is up"
    down = QueueStatus(up=False, waiting=0, workers=(), error="refused")
    assert "queue is down" in waiting_reason(waiting, down, [waiting], [])


def test_in_a_hosts_queue_one_waits_behind_what_came_before(
    host: Host, waiting: Attempt, made: Made
) -> None:
    running = made.attempts[-1]
    waiting.state, waiting.host, waiting.queue = "queued", "gpu-07", "q"
    assert waiting_reason(waiting, UP, [waiting], hosts()) == "A worker of gpu-07 takes it next"
    running.queue = "q"
    text = waiting_reason(waiting, UP, [running, waiting], hosts())
    assert text == "Waits at gpu-07 for Train of demo"


def test_the_page_shows_what_holds_each_gpu_and_what_waits(
    host: Host, waiting: Attempt, viewer_client: Client
) -> None:
    Experiment.objects.filter(pk=waiting.stage.round.experiment_id).update(host="gpu-07")
    page = Page(viewer_client.get("/jobs/").content.decode())
    text = " ".join(page.text.split())
    assert "0 H100 70.0 GiB / 80.0 GiB" in text
    assert "1024.0 GiB" in text and "torch 2.13.0" in text
    data = viewer_client.get("/jobs/?format=json").json()
    (line,) = data["hosts"]
    assert (line["held_by"], line["waiting"]) == (host.lease_id, [waiting.pk])
    assert line["up"] is True


def test_an_end_on_request_says_so_and_only_what_ended_is_counted(
    made: Made, viewer_client: Client
) -> None:
    ended = made.attempts[0]
    Attempt.objects.filter(pk=ended.pk).update(
        state="stopped", stop_reason="operator", signal="unknown"
    )
    text = viewer_client.get("/jobs/").content.decode()
    assert "stopped on request" in text
    assert "unknown" not in text
    over = Attempt.objects.exclude(state__in=ACTIVE).count()
    assert over < Attempt.objects.count()
    assert f"newest {over} of {over}" in text


def test_a_new_holder_is_news_for_a_poll(host: Host, viewer_client: Client) -> None:
    tag = viewer_client.get("/jobs/?part=live")["ETag"]
    same = viewer_client.get("/jobs/?part=live", headers={"If-None-Match": tag})
    Host.objects.update(lease=None)
    news = viewer_client.get("/jobs/?part=live", headers={"If-None-Match": tag})
    assert (same.status_code, news.status_code) == (304, 200)


def test_only_the_dashboard_of_rq_may_run_a_script_of_its_own(
    made: Made, admin_client: Client, viewer_client: Client
) -> None:
    admin_page = admin_client.get("/jobs/").content.decode()
    assert 'href="/queue/"' in admin_page
    assert 'href="/queue/"' not in viewer_client.get("/jobs/").content.decode()
    assert viewer_client.get("/queue/").status_code == 302
    assert viewer_client.get("/jobs/")["Content-Security-Policy"] == POLICY
    loose = viewer_client.get("/queue/")["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-inline'" in loose and "default-src 'none'" in loose


def test_a_commit_is_shown_by_its_first_digits_and_whole_on_hovering(
    db: None, viewer_client: Client
) -> None:
    commit = "e15f4ff6cc01933948725fec4934b2d07d8f53f8"
    versions = {"torch": "2.13", "commit": commit}
    Host.objects.create(name="gpu-07", workers=[{"pid": 1}], versions=versions)
    page = viewer_client.get("/jobs/").content.decode()
    assert f'title="{commit}">commit {commit[:12]}<' in page and ">torch 2.13<" in page
    (host,) = viewer_client.get("/jobs/?format=json").json()["hosts"]
    assert host["versions"] == versions


def test_a_stage_that_waits_is_not_said_to_run(db: None, home: Path) -> None:
    round_ = new_round(Experiment.objects.create(name="x"), 0)
    stage = new_attempt(round_.stages.get(kind="freeze")).stage
    made = actions.buttons(round_.experiment, round_, [stage], may_operate=True)
    why = {button.key: button.why for button in made}
    assert why["resume"] == "Freeze waits for its turn; stop it first"


def test_a_host_whose_workers_do_other_work_takes_no_stage(host: Host, waiting: Attempt) -> None:
    side = [placement.queue_name("gpu-07", kind) for kind in ("cpu", placement.WORK)]
    Host.objects.update(workers=[{"pid": 1, "queues": side}], lease=None)
    why = "No worker is up for stages that play or train"
    assert waiting_reason(waiting, UP, [waiting], hosts()) == why
    waiting.stage.round.experiment.host = "gpu-07"
    why = "Host gpu-07 has no worker for stages that play or train. Start manage.py worker there"
    assert waiting_reason(waiting, UP, [waiting], hosts()) == why
    waiting.state, waiting.host = "queued", "gpu-07"
    waiting.queue = placement.queue_name("gpu-07", "gpu")
    assert waiting_reason(waiting, UP, [waiting], hosts()) == why


def test_the_queue_page_says_what_each_worker_takes(
    db: None, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = WorkerInfo("a", "gpu-07", 1, "idle", None, None, (placement.WORK,))
    monkeypatch.setattr(queue, "status", lambda: replace(UP, workers=(side,)))
    assert "replays, exports and orders" in viewer_client.get("/jobs/").content.decode()
    (worker,) = viewer_client.get("/jobs/?format=json").json()["workers"]
    assert worker["takes"] == ["work"]


def test_the_only_worker_of_a_host_is_waited_for_whatever_the_queue(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves what needs a GPU first, so an analysis waits for every training."""
    Host.objects.create(name="gpu-07", workers=[{"pid": 1}])
    made = []
    for name, kind, line, state in (
        ("a", "train", "q:gpu", State.RUNNING),
        ("b", "analyse", "q:cpu", State.QUEUED),
        ("c", "train", "q:gpu", State.QUEUED),
    ):
        round_ = new_round(Experiment.objects.create(name=name), 0)
        attempt = new_attempt(round_.stages.get(kind=kind))
        Attempt.objects.filter(pk=attempt.pk).update(host="gpu-07", queue=line, state=state)
        made.append(Attempt.objects.select_related("stage__round__experiment").get(pk=attempt.pk))
    hosts = list(Host.objects.all())
    said = [waiting_reason(attempt, UP, made, hosts) for attempt in made[1:]]
    assert said == [
        "Waits at gpu-07 for Train of a · place 2 of 2",
        "Waits at gpu-07 for Train of a · place 1 of 2",
    ]
    side = {"pid": 2, "queues": [placement.queue_name("gpu-07", placement.WORK)]}
    Host.objects.update(workers=[{"pid": 1}, side])
    hosts = list(Host.objects.all())
    assert [waiting_reason(attempt, UP, made, hosts) for attempt in made[1:]] == said
    Host.objects.update(workers=[{"pid": 1}, {"pid": 2}])
    hosts = list(Host.objects.all())
    assert waiting_reason(made[1], UP, made, hosts) == "A worker of gpu-07 takes it next"
