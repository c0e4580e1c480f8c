"""The server of a gate: started, bound to its weights, found again, ended with everything of it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from jobs import process
from jobs.launchers import sglang_server
from jobs.launchers.sglang_http import ServerFailed, answers, check_serving, update_weights
from jobs.launchers.sglang_server import ServerSpec, SglangServer
from jobs.launchers.with_server import Guarded
from tests.ports import free_port
from trainer.files import read_json


def export(folder, weights=b"weights"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Make servers of the stand-in program; whatever is left of them is ended."""
    monkeypatch.setattr(
        ServerSpec,
        "command",
        lambda self: [
            *(sys.executable, str(Path(__file__).with_name("fake_sglang.py"))),
            *("--model-path", str(self.export), "--served-model-name", self.served_name),
            *("--host", self.host, "--port", str(self.port)),
        ],
    )
    port = free_port()
    made = []

    def make(mode="", weights=b"weights"):
        environ = {"FAKE_SGLANG": mode, "FAKE_SGLANG_PIDS": str(tmp_path / "pids")}
        spec = ServerSpec(export(tmp_path / "export", weights), "m", port=port, environ=environ)
        made.append(SglangServer(spec, tmp_path / "server.json"))
        return made[-1]

    yield make
    for item in made:
        item.stop()


def pids(tmp_path):
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


def test_the_command_is_the_published_one(tmp_path):
    spec = ServerSpec(tmp_path, "Qwen/Qwen3.5-4B", tp_size=1, dp_size=4, extra=("--x",))
    assert spec.command() == [
        *(sys.executable, "-m", "sglang.launch_server"),
        *("--model-path", str(tmp_path), "--served-model-name", "Qwen/Qwen3.5-4B"),
        *("--host", "127.0.0.1", "--port", "30000", "--tp-size", "1", "--dp-size", "4"),
        *("--mem-fraction-static", "0.7", "--tool-call-parser", "qwen3_coder"),
        *("--reasoning-parser", "qwen3", "--x"),
    ]


def test_a_server_is_known_by_its_weights_and_leaves_nothing(server, tmp_path):
    running = server()
    record = running.start()
    assert record["loaded"] == str(tmp_path / "export")
    assert (
        record["weights_sha256"] == read_json(tmp_path / "export" / "export.json")["weights_sha256"]
    )
    check_serving(record)
    started = [process.start_token(pid) for pid in pids(tmp_path)]
    assert all(started)
    running.stop()
    assert not answers(running.spec.base_url)
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]
    assert not (tmp_path / "server.json").exists()


def test_a_probe_is_the_same_whatever_the_server_has_cached(server):
    record = server().start()
    for _ in range(2):
        check_serving(record)


def test_a_server_that_stays_busy_cannot_be_probed(server, tmp_path):
    with pytest.raises(ServerFailed, match="cache could not be emptied"):
        server("busy").start()
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]


def test_other_weights_behind_the_same_name_are_noticed(server, tmp_path):
    record = server().start()
    (tmp_path / "export" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ServerFailed, match="answers changed"):
        check_serving(record)


def test_an_updated_server_serves_the_other_export(server, tmp_path):
    running = server()
    record = running.start()
    other = export(tmp_path / "other", b"other")
    weights = update_weights(running.spec.base_url, other)
    assert weights != record["weights_sha256"]
    with pytest.raises(ServerFailed, match="now serves"):
        check_serving(record)


def test_a_second_process_finds_the_running_server(server, tmp_path):
    record = server().start()
    before = pids(tmp_path)
    assert server().start() == record
    assert pids(tmp_path) == before


def test_a_running_server_with_older_weights_is_replaced(server, tmp_path):
    first = server().start()
    before = pids(tmp_path)
    second = server(weights=b"newer").start()
    assert second["weights_sha256"] != first["weights_sha256"]
    assert pids(tmp_path) != before
    assert [process.start_token(pid) for pid in before] == ["", ""]


def test_a_server_that_dies_says_where_to_look(server, tmp_path):
    with pytest.raises(ServerFailed, match=r"exit code 1.*server\.log"):
        server("dies").start()
    assert "no GPU here" in (tmp_path / "server.log").read_text()
    assert not (tmp_path / "server.json").exists()


def test_a_server_that_never_answers_is_ended(server, tmp_path, monkeypatch):
    monkeypatch.setattr(sglang_server, "READY_TIMEOUT_S", 1.5)
    with pytest.raises(ServerFailed, match="not ready within"):
        server("never").start()
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]


def test_a_stop_while_it_starts_ends_it(server, tmp_path):
    def started():
        return (tmp_path / "pids").exists() and len(pids(tmp_path)) == 2

    with pytest.raises(ServerFailed, match="stopped before"):
        server("never").start(should_stop=started)
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]


def test_a_server_that_does_not_listen_is_killed(server, tmp_path, monkeypatch):
    monkeypatch.setattr(sglang_server, "GRACE_S", 0.5)
    running = server("deaf")
    running.start()
    running.stop()
    deadline = time.monotonic() + 10
    while any(process.start_token(pid) for pid in pids(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_that_loaded_something_else_is_refused(server):
    with pytest.raises(ServerFailed, match="serves /elsewhere"):
        server("other").start()


def test_a_strangers_server_on_the_port_is_left_alone(server, tmp_path):
    running = server()
    running.start()
    stranger = SglangServer(running.spec, tmp_path / "another.json")
    with pytest.raises(ServerFailed, match="not ours"):
        stranger.start()
    assert answers(running.spec.base_url)


def guarded(server, code, mode="", weights=b"weights"):
    """Run a little program while a server of ours is up; returns its exit code."""
    return Guarded(server(mode, weights), [sys.executable, "-c", code]).run()


@pytest.fixture
def handlers():
    """Put back the signal handlers that a guarded command sets."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_command_runs_while_the_export_is_served_and_its_exit_code_is_ours(
    server, tmp_path, handlers
):
    url = server().spec.base_url
    ask = f"import urllib.request as u; u.urlopen('{url}/v1/models'); raise SystemExit(3)"
    assert guarded(server, ask) == 3
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]


def test_a_command_whose_server_changed_meanwhile_does_not_count(server, tmp_path, handlers):
    weights = tmp_path / "export" / "model.safetensors"
    assert guarded(server, f"open({str(weights)!r}, 'wb').write(b'swapped')") == 70


def test_without_a_server_the_command_does_not_run(server, tmp_path, handlers):
    mark = tmp_path / "ran"
    assert guarded(server, f"open({str(mark)!r}, 'w')", mode="dies") == 70
    assert not mark.exists()


def test_a_stop_reaches_the_command(server, tmp_path, handlers):
    mark = tmp_path / "ready"
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        f"open({str(mark)!r}, 'w').close(); time.sleep(600)"
    )
    run = Guarded(server(), [sys.executable, "-c", code])

    def stop_when_ready():
        while not mark.exists():
            time.sleep(0.05)
        run.request_stop()

    threading.Thread(target=stop_when_ready, daemon=True).start()
    assert run.run() == 143


def test_a_server_of_equal_weights_that_was_faster_at_the_port_is_not_ours(
    server, tmp_path, monkeypatch
):
    first = server()
    first.start()
    asked = []

    def too_early(url):
        asked.append(url)
        return len(asked) > 1 and answers(url)  # both looked before either was there

    monkeypatch.setattr(sglang_server, "answers", too_early)
    second = SglangServer(first.spec, tmp_path / "second" / "server.json")
    with pytest.raises(ServerFailed, match=r"the server ended \(exit code 1\)"):
        second.start()
    check_serving(read_json(tmp_path / "serving.json"))


def test_a_server_that_dies_ends_its_command_before_every_episode_has_failed(
    server, tmp_path, handlers, capsys
):
    program = (
        f"import os, time; os.kill(int(open({str(tmp_path / 'pids')!r}).read().split()[0]), 9)"
    )
    began = time.monotonic()
    assert guarded(server, f"{program}; time.sleep(600)") == 70
    assert time.monotonic() - began < 60
    assert "the server ended (SIGKILL)" in capsys.readouterr().err


def test_a_stop_ends_what_listens_to_nobody_before_the_stage_is_killed(server, tmp_path, handlers):
    mark = tmp_path / "ready"
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code = f"{deaf}open({str(mark)!r}, 'w').close(); time.sleep(600)"
    run = Guarded(server("deaf"), [sys.executable, "-c", code])

    def stop_when_ready():
        while not mark.exists():
            time.sleep(0.05)
        asked.append(time.monotonic())
        run.request_stop()

    asked = []
    threading.Thread(target=stop_when_ready, daemon=True).start()
    assert run.run() == 143
    assert time.monotonic() - asked[0] < process.STOP_GRACE_S
    assert [process.start_token(pid) for pid in pids(tmp_path)] == ["", ""]


def test_a_server_that_does_not_answer_is_a_failure_in_words():
    gone = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServerFailed, match="did not answer"):
        check_serving({"base_url": gone, "loaded": "x", "served_name": "m", "probe_sha256": ""})
