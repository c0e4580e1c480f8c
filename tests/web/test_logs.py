"""Logs by byte offset: whole lines, colours, levels, and nothing that acts."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from django.test import Client

from intraskill_web.core.formats import size
from intraskill_web.experiments.models import Attempt
from intraskill_web.monitoring.attempts.environment import MASK, flat, masked
from intraskill_web.monitoring.attempts.failure import ended_how, excerpt
from intraskill_web.monitoring.attempts.logs import (
    LINE_LIMIT,
    parse_line,
    read_log,
    tail_start,
)
from intraskill_web.monitoring.attempts.search import (
    MATCHES,
    PIECE,
    count_levels,
    search_log,
)
from jobs import environment
from jobs.environment import snapshot
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
    monkeypatch.setattr("intraskill_web.monitoring.attempts.logs.COUNTED", 3)
    log = write(tmp_path / "a.log", "one\ntwo\n")
    assert [line.number for line in read_log(log, 4).lines] == [None]


def test_a_last_line_without_an_end_is_shown_once_nobody_writes_any_more(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "one\nKilled")
    assert [x.text for x in read_log(log, 0).lines] == ["one"]
    part = read_log(log, 0, over=True)
    assert ([x.text for x in part.lines], part.at_end) == (["one", "Killed"], True)
    assert [x.text for x in search_log(log, 0, text="kill", over=True).lines] == ["Killed"]
    assert search_log(log, 0, text="kill").lines == []


def test_a_search_finds_lines_whatever_their_case_and_marks_the_words(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "INFO Step one\nINFO two\nINFO a STEP and a step\n")
    found = search_log(log, 0, text="step")
    assert [line.number for line in found.lines] == [1, 3]
    assert [(s.text, s.hit) for s in found.lines[1].spans] == [
        ("a ", False), ("STEP", True), (" and a ", False), ("step", True),
    ]  # fmt: skip
    assert not found.full


def test_a_search_sees_through_colours_and_reads_chinese(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "reward \x1b[32m0.6\x1b[0m1\n水杯 found\nplain\n")
    (line,) = search_log(log, 0, text="reward 0.61").lines
    assert [(s.text, s.css, s.hit) for s in line.spans] == [
        ("reward ", "", True), ("0.6", "a32", True), ("1", "", True),
    ]  # fmt: skip
    assert [x.number for x in search_log(log, 0, text="水杯").lines] == [2]


def test_a_search_takes_its_text_as_it_is(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "a.b\naxb\n[x](\n")
    assert [x.text for x in search_log(log, 0, text="a.b").lines] == ["a.b"]
    assert [x.text for x in search_log(log, 0, text="[x](").lines] == ["[x]("]
    assert search_log(log, 0, text="none").lines == []
    assert search_log(tmp_path / "missing.log", 0, text="a").lines == []


def test_a_search_with_a_level_wants_both(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "INFO disk\nERROR disk\nERROR net\n")
    assert [x.text for x in search_log(log, 0, text="disk", level="error").lines] == ["disk"]


def test_a_search_of_a_large_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    lines = "".join(f"INFO step {i} ok\n" for i in range(2 * MATCHES + 10))
    log = write(tmp_path / "a.log", lines)
    seen: list[int | None] = []
    start, pages = 0, 0
    while True:
        found = search_log(log, start, text="step")
        seen += [line.number for line in found.lines]
        start, pages = found.next, pages + 1
        if not found.full:
            break
    assert (pages, seen) == (3, list(range(1, 2 * MATCHES + 11)))


def test_offsets_stay_true_across_the_pieces_of_a_search(tmp_path: Path) -> None:
    text = "x" * 99 + "\n"
    log = write(tmp_path / "a.log", text * (PIECE // 50) + "needle here\n" + text * 10)
    (line,) = search_log(log, 0, text="needle").lines
    assert log.read_bytes()[line.offset :].startswith(b"needle here\n")
    assert line.number == PIECE // 50 + 1


def test_levels_are_counted_where_the_log_is_not_too_long(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", "INFO a\nWARNING b\nERROR c\nValueError: x\nno error in it\n")
    assert count_levels(log) == {"warn": 1, "error": 2}
    assert count_levels(log, limit=10) is None
    assert count_levels(tmp_path / "missing.log") == {"warn": 0, "error": 0}


TRACEBACK = (
    "INFO a\nTraceback (most recent call last):\n  File x\nKeyError: 'q'\n"
    "INFO b\nTraceback (most recent call last):\n  File y\nOSError: last\nINFO end\n"
)


def test_the_failure_panel_shows_the_last_error_with_the_lines_before_it(tmp_path: Path) -> None:
    found = excerpt(write(tmp_path / "a.log", TRACEBACK))
    assert found.first is not None and found.first.number == 6
    assert [line.number for line in found.lines] == list(range(1, 10))
    quiet = excerpt(write(tmp_path / "b.log", "INFO fine\n"))
    assert (quiet.first, [x.text for x in quiet.lines]) == (None, ["fine"])
    assert excerpt(tmp_path / "missing.log").lines == []


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        (None, "SIGKILL", "killed by SIGKILL"),
        (137, "", "killed by SIGKILL"),
        (139, "", "killed by SIGSEGV"),
        (2, "", "exit code 2 (bad input)"),
        (3, "", "exit code 3"),
        (255, "", "exit code 255"),
        (None, "unknown", "killed, by what nobody saw"),
        (None, "", ""),
    ],
)
def test_an_end_is_named_by_its_signal_or_code(code: int | None, name: str, words: str) -> None:
    assert ended_how(code, name) == words


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory\n", "ran out of memory"),
        ("OSError: [Errno 28] No space left on device\n", "disk was full"),
        ("OSError: [Errno 30] Read-only file system: 'x'\n", "could not be written"),
        ("sqlite3.OperationalError: database is locked\n", "locked for too long"),
        ("ConnectionRefusedError: [Errno 111] Connection refused\n", "did not answer"),
    ],
)
def test_a_known_cause_comes_with_its_remedy(
    made: Made, viewer_client: Client, log: str, word: str
) -> None:
    attempt = Attempt.objects.get(pk=made.attempts[0].pk)
    attempt.log_path = "logs/cause.log"  # of its own: files are not rolled back
    attempt.state, attempt.exit_code = "failed", 70
    attempt.save()
    attempt.log_file.write_text("INFO before\n" + log)
    text = viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode()
    assert word in text
    assert "exit code 70 (a fault of ours)" in text
    attempt.log_file.write_text("INFO before\nValueError: else\n")
    assert word not in viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode()


def test_the_memory_hint_names_the_peak_and_what_the_machine_has(
    made: Made, viewer_client: Client
) -> None:
    attempt = made.attempts[0]
    total = psutil.virtual_memory().total
    Attempt.objects.filter(pk=attempt.pk).update(
        state="failed", signal="SIGKILL", exit_code=None, peak_memory_bytes=total // 4,
        environment=snapshot(),
    )  # fmt: skip
    text = viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode()
    assert f"Its peak was {size(total // 4)} of the machine&#x27;s {size(total)}." in text
    assert "Other processes may have taken the rest." in text
    Attempt.objects.filter(pk=attempt.pk).update(state="stopped", stop_reason="operator")
    assert (
        "out of memory" not in viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode()
    )


def test_a_snapshot_names_the_packages_of_a_gpu_host_where_they_are_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert snapshot()["packages"]["django"]
    monkeypatch.setattr(environment, "version_of", {"megatron-core": "0.15.0", "ray": "2.49"}.get)
    packages = snapshot()["packages"]
    assert (packages["megatron-core"], packages["ray"]) == ("0.15.0", "2.49")
    assert packages["torch"] is None and "sglang" not in packages


SNAPSHOT = {
    "python": "3.11.9",
    "packages": {"torch": "2.13.0", "tokenizers": "0.22"},
    "variables": {
        "OPENAI_API_KEY": "sk-abcdefghijklmnop",
        "DATABASE_URL": "postgres://me:hunter2@db/x",
        "HF_HOME": "/data/hf",
        "NOTE": "uses hf_abcdefghijklmnopqrst",
    },
    "free_bytes": 2**30,
}


def test_secrets_of_the_environment_are_masked(made: Made, viewer_client: Client) -> None:
    shown = dict(flat(SNAPSHOT))
    assert shown["variables.OPENAI_API_KEY"] == MASK
    assert shown["variables.DATABASE_URL"] == f"postgres://{MASK}@db/x"
    assert shown["variables.NOTE"] == f"uses {MASK}"
    assert (shown["variables.HF_HOME"], shown["tokenizers"]) == ("/data/hf", "0.22")
    assert shown["free"] == "1.0 GiB"
    attempt = made.attempts[0]
    Attempt.objects.filter(pk=attempt.pk).update(environment=SNAPSHOT)
    for suffix in ("", "?format=json"):
        text = viewer_client.get(f"/jobs/attempts/{attempt.pk}/{suffix}").content.decode()
        assert "hunter2" not in text and "sk-abc" not in text and "hf_abc" not in text
        assert "2.13.0" in text
    assert masked(SNAPSHOT)["packages"] == SNAPSHOT["packages"]


def test_the_page_searches_and_keeps_the_search_in_its_address(
    made: Made, viewer_client: Client
) -> None:
    attempt = made.attempts[0]
    text = viewer_client.get(f"/jobs/attempts/{attempt.pk}/?q=step+7").content.decode()
    assert text.count("<mark") == 1
    assert 'value="step 7"' in text
    assert "level=warn&amp;q=step+7" in text
    hostile = viewer_client.get(f"/jobs/attempts/{attempt.pk}/?q=%3Cscript").content.decode()
    assert "<script>alert" not in hostile
    assert "<mark>&lt;script</mark>" in hostile


def test_the_page_counts_warnings_and_errors(made: Made, viewer_client: Client) -> None:
    attempt = made.attempts[0]
    text = " ".join(viewer_client.get(f"/jobs/attempts/{attempt.pk}/").content.decode().split())
    assert ">warn 3<" in text
    only = viewer_client.get(f"/jobs/attempts/{attempt.pk}/?level=warn").content.decode()
    assert only.count('class="lv-warn"') == 3


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
def test_a_senseless_offset_is_refused(made: Made, viewer_client: Client, start: str) -> None:
    pk = made.attempts[0].pk
    assert viewer_client.get(f"/jobs/attempts/{pk}/log/?from={start}").status_code == 400


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
