"""Logs by byte offset: whole lines, colours, levels, and nothing that acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.experiments.logs import (
    LINE_LIMIT,
    last_error,
    parse_line,
    read_log,
    tail_start,
)
from intraskill_web.experiments.models import Attempt
from tests.web.factories import Made


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_an_unfinished_line_waits_for_its_end(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "one\ntwo\nthr")
    part = read_log(log, 0)
    assert [line.text for line in part.lines] == ["one", "two"]
    assert (part.next, part.size, part.at_end) == (8, 11, False)
    with log.open("a") as handle:
        handle.write("ee\n")
    assert [line.text for line in read_log(log, part.next).lines] == ["three"]


def test_a_line_is_named_by_where_it_begins(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "one\n二\nthree\n")
    assert [line.offset for line in read_log(log, 0).lines] == [0, 4, 8]


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "none.log", 0).lines == []
    assert tail_start(tmp_path / "none.log") == 0


def test_the_tail_begins_at_a_line(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "".join(f"line {i}\n" for i in range(100)))
    start = tail_start(log, 50)
    assert read_log(log, start).lines[0].text.startswith("line ")
    assert 0 < log.stat().st_size - start <= 50


def test_an_offset_beyond_the_end_is_the_end(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "one\n")
    assert read_log(log, 999).next == 4


def test_a_line_longer_than_an_answer_still_gets_through(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "x" * 300)
    part = read_log(log, 0, limit=100)
    assert (len(part.lines), part.next) == (1, 100)


@pytest.mark.parametrize(
    ("raw", "time", "level", "text"),
    [
        ("2026-08-01T12:00:01.5Z INFO step 3", "12:00:01", "info", "step 3"),
        ("12:00:01 WARNING slow", "12:00:01", "warn", "slow"),
        ("CRITICAL out of memory", "", "error", "out of memory"),
        ("ValueError: bad", "", "error", "ValueError: bad"),
        ("plain text", "", "", "plain text"),
    ],
)
def test_time_and_level_are_taken_from_the_line(raw: str, time: str, level: str, text: str) -> None:
    line = parse_line(raw.encode(), 0)
    assert (line.time, line.level, line.text) == (time, level, text)


def test_colours_become_classes_and_other_sequences_vanish() -> None:
    line = parse_line(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2Kplain \x1b[32mgreen", 0)
    assert [(s.text, s.css) for s in line.spans] == [
        ("red", "a31"),
        (" plain ", ""),
        ("green", "a32"),
    ]


def test_control_and_direction_characters_are_removed() -> None:
    assert parse_line("a\x00b\u202ec\x08d\n".encode(), 0).text == "abcd"
    assert parse_line(b"\xff\xfe ok", 0).text == "\ufffd\ufffd ok"


def test_of_a_rewritten_progress_line_the_last_state_counts() -> None:
    assert parse_line(b"10 %\r50 %\r100 %\n", 0).text == "100 %"


def test_a_very_long_line_says_how_much_is_left_out() -> None:
    assert parse_line(b"y" * (LINE_LIMIT + 7), 0).text.endswith("… [7]")


def test_a_level_keeps_worse_lines(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "INFO a\nWARNING b\nERROR c\nd\n")
    assert [x.text for x in read_log(log, 0, level="warn").lines] == ["b", "c"]


def test_lines_have_the_numbers_of_an_editor_wherever_reading_begins(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "INFO a\n\nWARNING b\nc\n")
    assert [line.number for line in read_log(log, 0).lines] == [1, 3, 4]
    assert [(x.number, x.text) for x in read_log(log, 8).lines] == [(3, "b"), (4, "c")]
    assert [line.number for line in read_log(log, 0, level="warn").lines] == [3]


def test_far_into_a_huge_log_lines_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.experiments.logs.COUNTED", 3)
    log = write(tmp_path / "a.log", "one\ntwo\n")
    assert [line.number for line in read_log(log, 4).lines] == [None]


def test_the_error_panel_points_to_the_last_traceback(tmp_path: Path) -> None:
    log = write(
        tmp_path / "a.log", "INFO a\nTraceback (most recent call last):\n  File x\nKeyError: 'q'\n"
    )
    found = last_error(log)
    assert found is not None and found.text.startswith("Traceback")
    assert last_error(write(tmp_path / "b.log", "INFO fine\n")) is None


def test_the_page_answers_lines_from_an_offset(made: Made, viewer_client: Client) -> None:
    attempt = made.attempts[0]
    address = f"/jobs/attempts/{attempt.pk}/log/?from=0"
    rows = viewer_client.get(address)
    assert rows.content.decode().count("<div id=") == 41
    assert rows["X-Log-Next"] == str(attempt.log_file.stat().st_size)
    assert rows["X-Log-Ended"] == "1"
    nothing = viewer_client.get(f"/jobs/attempts/{attempt.pk}/log/?from={rows['X-Log-Next']}")
    assert nothing.content.strip() == b""
    data = viewer_client.get(f"{address}&format=json").json()
    assert data["ended"] is True
    assert len(data["lines"]) == 41


def test_a_running_attempt_is_not_ended(made: Made, viewer_client: Client) -> None:
    attempt = next(a for a in made.attempts if a.state == "running")
    assert viewer_client.get(f"/jobs/attempts/{attempt.pk}/log/")["X-Log-Ended"] == "0"


@pytest.mark.parametrize("start", ["-1", "x", "1e3", "99999999999999999999"])
def test_a_senseless_offset_reads_from_the_start(
    made: Made, viewer_client: Client, start: str
) -> None:
    pk = made.attempts[0].pk
    assert viewer_client.get(f"/jobs/attempts/{pk}/log/?from={start}").status_code == 200


def test_the_log_can_be_downloaded_and_a_missing_one_is_a_404(
    made: Made, viewer_client: Client
) -> None:
    pk = made.attempts[0].pk
    answer = viewer_client.get(f"/jobs/attempts/{pk}/log.txt")
    assert "attachment" in answer["Content-Disposition"]
    assert b"step 3" in b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    Attempt.objects.filter(pk=pk).update(log_path="logs/none.log")
    assert viewer_client.get(f"/jobs/attempts/{pk}/log.txt").status_code == 404


def test_a_failed_attempt_says_what_killed_it(made: Made, viewer_client: Client) -> None:
    attempt = made.attempts[0]
    Attempt.objects.filter(pk=attempt.pk).update(
        state="failed", signal="SIGKILL", exit_code=None, error="worker died"
    )
    text = viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode()
    assert "killed by SIGKILL" in text
    assert "out of memory" in text
    assert "worker died" in text


def test_the_queue_names_the_fault_of_a_traceback(made: Made, viewer_client: Client) -> None:
    attempt = made.attempts[0]
    attempt.error = "Traceback (most recent call last):\n  File x, line 3\nKeyError: 'q'\n"
    attempt.state = "failed"
    attempt.save()
    assert attempt.cause == "KeyError: 'q'"
    shown = viewer_client.get("/jobs/").content.decode()
    assert "KeyError: &#x27;q&#x27;" in shown and "Traceback" not in shown
