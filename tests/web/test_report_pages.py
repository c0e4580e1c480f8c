"""The page of exports: who may start one, what the job makes of it, preview and download."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports import services
from intraskill_web.reports.models import Export
from intraskill_web.reports.silence import SILENT_S
from jobs.stages.report import run_export
from tests.web.report_run import write_run
from trainer.errors import InputError

pytestmark = pytest.mark.django_db
LIST = "/experiments/small/reports/"


@pytest.fixture
def experiment(home: Path) -> Experiment:
    write_run(home / "runs" / "small", rounds=1)
    return Experiment.objects.create(name="small")


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """What would reach the queue."""
    jobs: list[tuple[str, int, str]] = []
    monkeypatch.setattr(services, "enqueue_work_on_commit", lambda *job: jobs.append(job))
    return jobs


def test_nothing_yet_is_said_with_what_to_do(experiment: Experiment, viewer_client: Client) -> None:
    html = viewer_client.get(LIST).content.decode()
    assert "No report yet" in html
    assert "Needs the role operator" in html


def test_a_viewer_cannot_start_one(experiment: Experiment, viewer_client: Client) -> None:
    assert viewer_client.post(LIST + "start/").status_code == 403
    assert Export.objects.count() == 0


def test_starting_needs_a_post(experiment: Experiment, operator_client: Client) -> None:
    assert operator_client.get(LIST + "start/").status_code == 405


def test_an_operator_starts_one_which_is_recorded_and_handed_in(
    experiment: Experiment,
    operator_client: Client,
    operator: User,
    handed_in: list[tuple[str, int, str]],
) -> None:
    answer = operator_client.post(LIST + "start/", {"languages": "en,zh", "archive": "on"})
    assert answer.headers["Location"] == LIST
    export = Export.objects.get()
    assert (export.state, export.owner, export.archive) == ("requested", operator, True)
    assert handed_in == [("jobs.stages.report.run_export", export.pk, f"export-{export.pk}-1")]
    event = AuditEvent.objects.get(action="report.request")
    assert (event.actor, event.experiment) == (operator, "small")


def test_an_equal_export_is_not_made_twice_at_once(
    experiment: Experiment, operator_client: Client, handed_in: list[tuple[str, int, str]]
) -> None:
    for _ in range(2):
        operator_client.post(LIST + "start/", {"languages": "en"})
    assert Export.objects.count() == len(handed_in) == 1
    assert "An export of this is being made" in operator_client.get(LIST).content.decode()


def test_unknown_languages_are_refused(experiment: Experiment, operator_client: Client) -> None:
    operator_client.post(LIST + "start/", {"languages": "tlh"})
    assert Export.objects.count() == 0


def test_the_job_makes_checks_and_offers_the_site(
    experiment: Experiment, operator_client: Client, handed_in: list[tuple[str, int, str]]
) -> None:
    operator_client.post(LIST + "start/", {"languages": "en,zh", "archive": "on"})
    export = Export.objects.get()
    run_export(export.pk)
    export.refresh_from_db()
    assert (export.state, export.problems, export.done) == ("succeeded", [], export.total)
    assert export.checks["gates_refitted"] == 1
    html = operator_client.get(LIST).content.decode()
    assert "hashes, links and numbers hold" in html
    first = operator_client.get(f"/reports/{export.pk}/site/index.html")
    policy = first.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src" not in policy
    assert b"A policy and its written skill" in b"".join(first.streaming_content)  # type: ignore
    script = operator_client.get(f"/reports/{export.pk}/site/assets/report.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    packed = operator_client.get(f"/reports/{export.pk}/download/")
    assert packed.headers["Content-Disposition"] == 'attachment; filename="small.zip"'
    data = operator_client.get(LIST + "?format=json").json()["exports"][0]
    assert (data["state"], data["problems"]) == ("succeeded", [])


@pytest.mark.parametrize("path", ["../small.zip", "../../../../db.sqlite3", "no.html", "assets"])
def test_the_preview_shows_files_of_the_export_only(
    experiment: Experiment, operator_client: Client, path: str
) -> None:
    export = Export.objects.create(experiment=experiment, names=["small"], archive=True)
    run_export(export.pk)
    assert operator_client.get(f"/reports/{export.pk}/site/{path}").status_code == 404


def test_a_failure_says_why_and_can_be_tried_again(
    experiment: Experiment, operator_client: Client, handed_in: list[tuple[str, int, str]]
) -> None:
    file = experiment.folder / "round-000/gate/contributions.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    export = Export.objects.create(experiment=experiment, names=["small"])
    run_export(export.pk)
    export.refresh_from_db()
    assert export.state == "failed"
    assert "contributions.json" in export.error
    assert not export.folder.exists()
    assert "Try again" in operator_client.get(LIST).content.decode()
    file.write_bytes(whole)
    assert operator_client.post(f"/reports/{export.pk}/again/").status_code == 302
    run_export(handed_in[-1][1])
    export.refresh_from_db()
    assert (export.state, export.error) == ("succeeded", "")


def test_a_second_job_for_one_row_does_nothing(experiment: Experiment) -> None:
    export = Export.objects.create(experiment=experiment, names=["small"], state="running")
    run_export(export.pk)
    export.refresh_from_db()
    assert export.state == "running"


def test_an_export_whose_worker_went_silent_can_be_handed_in_again(
    experiment: Experiment, operator: User, handed_in: list[tuple[str, int, str]]
) -> None:
    export = Export.objects.create(
        experiment=experiment, names=["small"], state="running", heartbeat_at=timezone.now()
    )
    with pytest.raises(InputError, match="did not fail"):
        services.request_again(export, actor=operator)
    long_ago = timezone.now() - timezone.timedelta(seconds=SILENT_S + 1)
    Export.objects.filter(pk=export.pk).update(heartbeat_at=long_ago)
    services.request_again(export, actor=operator)
    export.refresh_from_db()
    assert export.state == "requested"
    assert len(handed_in) == 1


def test_polls_without_news_are_answered_304(experiment: Experiment, viewer_client: Client) -> None:
    tag = viewer_client.get(LIST).headers["ETag"]
    again = viewer_client.get(LIST + "?part=live", headers={"If-None-Match": tag})
    assert again.status_code == 304


def test_a_poll_hears_that_an_export_went_silent(
    experiment: Experiment, operator_client: Client
) -> None:
    export = Export.objects.create(experiment=experiment, names=["small"])
    tag = operator_client.get(LIST).headers["ETag"]
    long_ago = timezone.now() - timezone.timedelta(seconds=SILENT_S + 1)
    Export.objects.filter(pk=export.pk).update(created_at=long_ago)
    answer = operator_client.get(LIST + "?part=live", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert b">Try again<" in answer.content


def test_two_experiments_are_compared_from_the_page(
    experiment: Experiment, home: Path, operator_client: Client,
    handed_in: list[tuple[str, int, str]],
) -> None:  # fmt: skip
    write_run(home / "runs" / "other", rounds=1, seed=9)
    Experiment.objects.create(name="other")
    operator_client.post("/reports/start/", {"names": ["small"]})
    assert Export.objects.count() == 0
    operator_client.post("/reports/start/", {"names": ["small", "other"]})
    export = Export.objects.get()
    assert (export.experiment, export.names) == (None, ["other", "small"])
    run_export(export.pk)
    export.refresh_from_db()
    assert (export.state, export.problems) == ("succeeded", [])
    html = operator_client.get("/reports/").content.decode()
    assert "other, small" in html and "hashes, links and numbers hold" in html


def test_a_viewer_sees_comparisons_and_starts_none(
    experiment: Experiment, viewer_client: Client
) -> None:
    assert viewer_client.get("/reports/").status_code == 200
    assert viewer_client.post("/reports/start/", {"names": ["small"]}).status_code == 403
