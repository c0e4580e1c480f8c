"""Commands: their keys, their exit codes, what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from intraskill_web.core import doctor
from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.moves import refresh_round
from jobs import queue
from jobs.models import Host
from jobs.queue import QueueStatus, WorkerInfo
from jobs.transitions import State
from tests.jobs.traces import trace
from trainer.files import append_jsonl

Command = Callable[..., tuple[int, list[dict[str, Any]], str]]
Jobs = list[tuple[int, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command; returns exit code, JSON lines and messages."""

    def run(name: str, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        code = 0
        try:
            call_command(name, *arguments, "--json")
        except SystemExit as error:
            code = int(error.code or 0)
        output = capsys.readouterr()
        return code, [json.loads(line) for line in output.out.splitlines()], output.err

    return run


def test_a_round_is_started_shown_stopped_and_resumed(
    experiment: Experiment, handed_in: Jobs, command: Command
) -> None:
    code, [status], _ = command("round_start", "small")
    assert code == 0
    assert (status["experiment"], status["round"], status["state"]) == ("small", 0, "running")
    first = status["stages"][0]
    assert {"stage", "state", "attempt", "done", "total", "eta_seconds"} <= set(first)
    assert (first["stage"], first["state"], first["attempt"]) == ("freeze", "queued", 1)
    assert status["stages"][1]["state"] is None
    _, [status], _ = command("round_stop", "small")
    assert (status["state"], status["stages"][0]["state"]) == ("stopped", "stopped")
    _, [status], _ = command("round_resume", "small", "--round", "0")
    assert status["stages"][0]["attempt"] == 2
    command("round_stop", "small")
    code, [idle], message = command("round_stop", "small")
    assert (code, idle["state"]) == (1, "stopped")
    assert "nothing is running" in message
    _, [status], _ = command("round_resume", "small")
    _, [again], _ = command("round_status", "small")
    assert again == status


def test_a_round_can_be_pinned_to_a_host_that_is_known(
    experiment: Experiment, handed_in: Jobs, command: Command
) -> None:
    code, _, message = command("round_start", "small", "--host", "nowhere")
    assert code == 2 and "no worker of this host ever registered" in message
    assert not Attempt.objects.exists()
    Host.objects.create(name="gpu-1")
    code, [status], _ = command("round_start", "small", "--host", "gpu-1")
    assert (code, status["state"]) == (0, "running")
    assert Attempt.objects.get().host == "gpu-1"


def test_bad_requests_end_with_2_and_say_what_to_do(
    experiment: Experiment, handed_in: Jobs, command: Command
) -> None:
    code, lines, message = command("round_start", "nobody")
    assert (code, lines) == (2, [])
    assert "no such experiment" in message and "known: small" in message
    code, _, message = command("round_status", "small")
    assert code == 2 and "no such round" in message
    command("round_start", "small")
    code, _, message = command("round_start", "small")
    assert code == 2 and "round 0 is running. Wait for it, or stop it with round_stop" in message
    code, _, message = command("round_stop", "small", "--round", "3")
    assert code == 2 and "only the latest round, 0" in message
    assert Attempt.objects.get().state == State.QUEUED


def test_what_is_refused_comes_with_what_to_do(
    experiment: Experiment, handed_in: Jobs, command: Command
) -> None:
    command("round_start", "small")
    _, _, message = command("round_resume", "small")
    assert "already active. Wait for it, or stop it with round_stop" in message
    for number in (0, 1):
        round_ = experiment.rounds.filter(number=number).first() or new_round(experiment, number)
        Attempt.objects.update(state=State.SUCCEEDED)
        Stage.objects.filter(round=round_).update(state=State.SUCCEEDED)
        refresh_round(round_)
    Experiment.objects.update(rounds_planned=2)
    code, _, message = command("round_resume", "small")
    assert code == 2 and "nothing is left to do. Plan more with round_extend small 3" in message
    code, _, message = command("round_stop", "small", "--round", "0")
    assert code == 2 and "can be acted on (found 0). Name round 1, or none" in message
    code, _, message = command("ingest", "/nope")
    assert code == 2 and "no such file or folder. Name a trace file, or a folder" in message


def test_more_rounds_are_planned_where_all_are_finished(
    experiment: Experiment, handed_in: Jobs, command: Command
) -> None:
    Experiment.objects.update(rounds_planned=1)
    experiment.refresh_from_db()
    finished = new_round(experiment, 0)
    Stage.objects.filter(round=finished).update(state=State.SUCCEEDED)
    refresh_round(finished)
    code, _, message = command("round_start", "small")
    assert code == 2 and "found" not in message
    assert "the planned round is finished. Plan more with round_extend small 2" in message
    code, lines, message = command("round_extend", "small", "2")
    assert (code, lines) == (2, []) and "say why" in message and "reason" in message
    code, [planned], message = command("round_extend", "small", "2", "--reason", "it still rises")
    assert code == 0 and "round 0 has played it" in message
    assert (planned["experiment"], planned["rounds_planned"], planned["rounds_begun"]) == (
        "small", 2, 1,
    )  # fmt: skip
    assert AuditEvent.objects.get(action="experiment.rounds").detail["rounds"] == 2
    code, [status], _ = command("round_start", "small")
    assert (code, status["round"]) == (0, 1)
    for rounds in ("1", "20000"):
        code, lines, message = command("round_extend", "small", rounds)
        assert (code, lines) == (2, []) and f"found {rounds}" in message
    code, _, message = command("round_extend", "nobody", "2")
    assert code == 2 and "known: small" in message


def test_ingesting_twice_adds_nothing(
    transactional_db: None, home: Path, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "elsewhere" / "traces.jsonl"
    append_jsonl(file, [trace(1), trace(2, success=False)])
    code, [report], _ = command("ingest", str(file), "--experiment", "foreign")
    assert code == 0
    assert {k: v for k, v in report.items() if k != "seconds"} == {
        "files": 1,
        "episodes": 2,
        "turns": 4,
        "skipped": 0,
        "bad_lines": 0,
        "torn": 0,
        "problems": [],
    }
    _, [again], _ = command("ingest", str(file.parent), "--experiment", "foreign")
    assert (again["episodes"], again["skipped"]) == (0, 1)
    append_jsonl(file, [trace(3)])
    _, [more], _ = command("ingest", str(file), "--experiment", "foreign")
    assert more["episodes"] == 1
    row = Episode.objects.get(task_id=3)
    assert (row.purpose, row.file, row.line) == ("bare", file.resolve(), 2)


def test_bad_lines_are_counted_and_the_rest_is_read(
    transactional_db: None, home: Path, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, [trace(1)])
    with file.open("a") as handle:
        handle.write("not json\n")
        handle.write(json.dumps({"schema_version": "another"}) + "\n")
    append_jsonl(file, [trace(2)])
    code, [report], _ = command("ingest", str(file), "--experiment", "foreign")
    assert code == 1
    assert (report["episodes"], report["bad_lines"]) == (2, 2)


def test_ingest_needs_an_experiment_for_files_from_elsewhere(
    transactional_db: None, home: Path, tmp_path: Path, command: Command
) -> None:
    append_jsonl(tmp_path / "traces.jsonl", [trace(1)])
    code, _, message = command("ingest", str(tmp_path / "traces.jsonl"))
    assert code == 2 and "--experiment" in message
    code, _, message = command("ingest", str(tmp_path / "absent"))
    assert code == 2 and "no such file" in message


def test_episodes_are_found_by_words_and_filters(
    transactional_db: None, home: Path, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "traces.jsonl"
    append_jsonl(file, [trace(n, success=n % 2 == 0) for n in range(10)])
    command("ingest", str(file), "--experiment", "foreign")
    _, [found], _ = command("episode_find", "buy outcome:failure", "--limit", "3")
    assert (found["total"], found["more"], len(found["results"])) == (5, True, 3)
    first = found["results"][0]
    assert (first["task_id"], first["success"], first["snippet"]) == (9, False, "buy thing 9")
    assert {"id", "split", "treatment", "reward", "url"} <= set(first)
    _, [none], _ = command("episode_find", "buy thing 99", "--experiment", "foreign")
    assert (none["total"], none["more"], none["results"]) == (0, False, [])
    code, _, message = command("episode_find", "round:first")
    assert code == 2 and "whole number" in message


def test_verify_ends_with_1_when_a_document_changed(
    experiment: Experiment, command: Command
) -> None:
    code, [result], _ = command("verify", "small")
    assert (code, result["documents"]) == (0, 0)
    experiment.documents.create(kind="bank", path="experiment.json", sha256="0" * 64)
    code, [result], _ = command("verify", "small")
    assert code == 1
    assert [item["path"] for item in result["mismatched"]] == ["experiment.json"]


def test_the_doctor_names_each_check_and_a_remedy(
    transactional_db: None, home: Path, command: Command
) -> None:
    code, [result], _ = command("doctor")
    checks = {check["name"]: check for check in result["checks"]}
    assert {"python", "home", "disk", "database", "queue", "workers"} <= set(checks)
    assert all({"name", "ok", "detail", "remedy"} == set(check) for check in result["checks"])
    assert checks["database"]["ok"] and checks["home"]["ok"]
    assert not checks["queue"]["ok"] and "manage.py up" in checks["queue"]["remedy"]
    assert (code, result["ok"]) == (1, False)


@pytest.mark.parametrize(
    ("workers", "ok", "detail"),
    [
        ([], False, "none for stages"),
        ([("work",)], False, "1 for replays, exports and orders · none for stages"),
        ([("gpu", "cpu"), ("work",)], True, "1 for stages · 1 for replays, exports and orders"),
        ([("gpu", "cpu", "work")] * 2, True, "2 for stages; replays, exports and orders"),
        ([("gpu",)], False, "1 for stages that play or train · none for stages that need no GPU"),
    ],
)
def test_the_doctor_says_what_each_worker_does_and_misses_those_for_stages(
    workers: list[tuple[str, ...]], ok: bool, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tuple(WorkerInfo(str(n), "h", n, "idle", None, None, k) for n, k in enumerate(workers))
    monkeypatch.setattr(queue, "status", lambda: QueueStatus(up=True, waiting=0, workers=found))
    finding = doctor._workers()
    assert (finding.ok, finding.detail) == (ok, detail)


def test_a_demo_that_nobody_would_work_on_is_refused(
    transactional_db: None, home: Path, command: Command
) -> None:
    code, lines, message = command("demo", "--quick")
    assert (code, lines) == (2, [])
    assert "nothing runs this home" in message and "--wait" in message
    assert Experiment.objects.count() == 0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("demo", "--quick", "--rounds", "0"), "--rounds"),
        (("demo", "--quick", "--seed", "-1"), "--seed"),
        (("demo", "--quick", "--threads", "0"), "--threads"),
        (("episode_find", "mug", "--limit", "0"), "--limit"),
        (("round_status", "small", "--round", "9"), "--round"),
    ],
)
def test_a_number_out_of_range_is_refused_before_anything_is_made(
    experiment: Experiment,
    handed_in: Jobs,
    command: Command,
    arguments: tuple[str, ...],
    field: str,
) -> None:
    code, lines, message = command(*arguments)
    assert (code, lines) == (2, [])
    assert field in message and f"found {arguments[-1]}" in message
    assert list(Experiment.objects.all()) == [experiment]
