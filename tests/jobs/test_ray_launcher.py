"""A followed Ray job looks like a local process: output, stop, exit code, being found again."""

from __future__ import annotations

import io
import json
import sys
import threading
from pathlib import Path

import pytest

from jobs import launchers
from jobs.launchers import ray_job, ray_jobs, ray_left, ray_run
from jobs.launchers.ray_head import RayHead, local_head
from jobs.launchers.ray_jobs import JobServerGone, JobStatus
from jobs.launchers.ray_run import EXIT_LOST, EXIT_REFUSED, EXIT_STOPPED, RayJob, RayRun
from jobs.process import ProcessRef
from tests.trainer.engines_slime.launch_files import make_launch
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, write_json


class Server:
    """A job server whose jobs do what a script of states says."""

    def __init__(self, states, log="one\ntwo\n"):
        self.states = list(states)
        self.log = log
        self.submitted = []
        self.stopped = []
        self.known = {}

    def __call__(self, address):
        self.address = address
        return self

    def submit(self, entrypoint, submission_id, *, environment, resources=None):
        self.submitted.append((entrypoint, submission_id, environment, resources))
        return submission_id

    def status(self, submission_id):
        if submission_id in self.known:
            return self.known[submission_id]
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state == "running" and self.stopped:
            return JobStatus("stopped")
        return state if isinstance(state, JobStatus) else JobStatus(state)

    def logs(self, submission_id):
        return self.log

    async def tail(self, submission_id):
        yield self.log[:4]

    def stop(self, submission_id):
        self.stopped.append(submission_id)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Follow a job on a scripted server; returns exit code, output and the server."""
    monkeypatch.setattr(ray_run, "POLL_S", 0.01)

    def follow(states, *, stop=False, **fields):
        server = Server(states)
        monkeypatch.setattr(ray_run, "RayJobs", server)
        output = io.StringIO()
        job = RayJob(**{"name": "a b", "entrypoint": "go", "address": "http://x:1", **fields})
        runner = RayRun(job, tmp_path / "state.json", output)
        if stop:
            threading.Timer(0.05, runner.request_stop).start()
        done = []
        # Not the main thread: the test's own signal handlers stay.
        thread = threading.Thread(target=lambda: done.append(runner.run()))
        thread.start()
        thread.join(timeout=20)
        return done[0], output.getvalue(), server

    return follow


def test_a_job_that_succeeds_shows_its_output_once_and_ends_with_zero(run, tmp_path):
    code, output, server = run(["pending", "running", "running", "succeeded"])
    assert code == 0
    assert output.count("one\n") == 1
    assert output.count("two\n") == 1
    assert len(server.submitted) == 1
    assert server.submitted[0][1].startswith("a-b-")
    assert not (tmp_path / "state.json").exists()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (JobStatus("failed", "boom", 2), 2),
        (JobStatus("failed", "boom", -9), 137),
        (JobStatus("failed", "node died\ndetails", None), EXIT_LOST),
        (JobStatus("stopped", "", None), EXIT_STOPPED),
        (JobStatus("unknown"), EXIT_LOST),
    ],
)
def test_the_exit_code_is_the_jobs(run, status, code):
    found, output, _ = run(["running", status])
    assert found == code
    if code == EXIT_LOST and status.message:
        assert "was lost: node died" in output


def test_a_stop_request_stops_the_job_once(run):
    code, output, server = run(["running"], stop=True)
    assert code == EXIT_STOPPED
    assert len(server.stopped) == 1
    assert "stopping job" in output


def test_a_second_start_follows_the_job_of_a_first_one_that_was_killed(run, tmp_path):
    left_behind(tmp_path)
    code, output, server = run(["running", "running", "succeeded"])
    assert code == 0
    assert server.submitted == []
    assert "found job old" in output


def left_behind(tmp_path, **changes):
    """What a launcher that was killed leaves: its state file."""
    record = {
        "submission_id": "old",
        "address": "http://x:1",
        "command_sha256": fingerprint(["a b", "go"]),
    }
    write_json(tmp_path / "state.json", {**record, **changes})


def test_a_job_that_succeeded_unwatched_is_not_run_again(run, tmp_path):
    left_behind(tmp_path)
    code, output, server = run(["succeeded"])
    assert code == 0
    assert server.submitted == []
    assert "one\ntwo\n" in output
    assert not (tmp_path / "state.json").exists()


@pytest.mark.parametrize("changes", [{"command_sha256": "x"}, {"address": "http://other:1"}])
def test_nothing_is_started_beside_a_job_of_another_command_or_cluster(run, tmp_path, changes):
    """Two trainers of one folder would overwrite each other's checkpoints."""
    left_behind(tmp_path, **changes)
    code, output, server = run(["running"])
    assert code == EXIT_REFUSED
    assert server.submitted == []
    assert server.stopped == []
    assert "job old at" in output
    assert read_json(tmp_path / "state.json")["submission_id"] == "old"


@pytest.mark.parametrize("changes", [{"command_sha256": "x"}, {"address": "http://other:1"}])
def test_a_job_of_another_command_that_ended_is_in_nobodys_way(run, tmp_path, changes):
    left_behind(tmp_path, **changes)
    code, _, server = run(["succeeded", "running", "succeeded"])
    assert code == 0
    assert len(server.submitted) == 1


def test_a_job_that_ended_meanwhile_is_done_again(run, tmp_path):
    left_behind(tmp_path)
    code, _, server = run([JobStatus("failed", "", None), "running", "succeeded"])
    assert code == 0
    assert len(server.submitted) == 1


@pytest.fixture
def end(monkeypatch, tmp_path):
    """End the job that is left; returns exit code, the server, and whether it is still known."""
    monkeypatch.setattr(ray_left, "POLL_S", 0.01)
    monkeypatch.setattr(ray_left, "ENDS_WITHIN_S", 0.2)

    def ends(states, made=Server, **changes):
        server = made(states)
        monkeypatch.setattr(ray_left, "RayJobs", server)
        left_behind(tmp_path, **changes)
        code = ray_job.main(["end", "--state", str(tmp_path / "state.json")])
        return code, server, (tmp_path / "state.json").exists()

    return ends


def test_a_job_that_is_left_is_ended_and_waited_for(end, tmp_path):
    assert ray_left.left_job(tmp_path / "state.json") is None
    code, server, known = end(["running"])
    assert (code, server.stopped, known) == (0, ["old"], False)
    assert server.address == "http://x:1"
    assert ray_job.main(["end", "--state", str(tmp_path / "state.json")]) == 0, "none is left"


@pytest.mark.parametrize("state", ["succeeded", "stopped", "unknown"])
def test_a_job_that_is_over_is_only_forgotten(end, state):
    assert end([state])[::2] == (0, False)


def test_a_job_that_does_not_end_or_cannot_be_asked_stays_known(end, capsys):
    class Deaf(Server):
        def stop(self, submission_id):
            pass

    code, _, known = end(["running"], Deaf)
    assert (code, known) == (2, True)
    assert "did not end within" in capsys.readouterr().err
    code, _, known = end(["running"], Gone)
    assert (code, known) == (2, True)
    assert "does not answer" in capsys.readouterr().err


def test_a_job_goes_with_the_head_that_was_started_for_it(end, monkeypatch):
    head = {"address": "http://y:2", "pid": 1, "pgid": 1, "started": "boot:other:1"}
    code, server, known = end(["running"], head=head)
    assert (code, server.stopped, known) == (0, [], False), "the head is gone, and its job too"
    stopped = []
    monkeypatch.setattr(RayHead, "alive", lambda self: True)
    monkeypatch.setattr(RayHead, "stop", lambda self: stopped.append(self.address))
    code, server, known = end(["running"], head=head)
    assert (code, server.stopped, known, stopped) == (0, ["old"], False, ["http://y:2"])
    assert server.address == "http://y:2"


def test_secrets_go_to_the_job_only_when_no_head_of_ours_hands_them_on(run, monkeypatch):
    _, output, server = run(["succeeded"], secrets={"KEY": "hush"}, environment={"A": "1"})
    assert server.submitted[0][2]["KEY"] == "hush"
    assert "hush" not in output

    class Head:
        address = "http://x:1"

        def stop(self):
            self.stopped = True

    head = Head()
    given = {}

    def start(argv, address, *, log, environ, register, should_stop):
        given.update(environ)
        return head

    monkeypatch.setattr(ray_run, "start_head", start)
    _, _, server = run(["succeeded"], secrets={"KEY": "hush"}, head=("ray", "start"))
    assert "KEY" not in server.submitted[0][2]
    assert given == {"KEY": "hush"}
    assert head.stopped


class Gone(Server):
    """A server that is out of reach once the job runs."""

    def status(self, submission_id):
        raise JobServerGone("http://x:1 does not answer for 60 s")


def test_a_cluster_that_is_gone_is_said_and_not_waited_for_for_ever(run, monkeypatch, tmp_path):
    monkeypatch.setattr("tests.jobs.test_ray_launcher.Server", Gone)
    code, output, server = run(["running"])
    assert code == EXIT_LOST
    assert "does not answer" in output
    left = read_json(tmp_path / "state.json")
    assert left["submission_id"] == server.submitted[0][1]  # the job may well go on


def test_a_job_whose_cluster_was_out_of_reach_is_found_again(run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tests.jobs.test_ray_launcher.Server", Gone)
        _, _, first = run(["running"])
    code, output, second = run(["running", "succeeded"])
    assert code == 0
    assert second.submitted == []
    assert f"found job {first.submitted[0][1]}" in output


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("Request failed with status code 401: token", InputError),
        ("Request failed with status code 400: bad runtime_env", InputError),
        ("Request failed with status code 503: not yet", JobServerGone),
        ("No available agent to submit job", JobServerGone),
    ],
)
def test_what_the_job_server_refuses_is_told_at_once_and_the_rest_asked_again(
    monkeypatch, answer, error
):
    asked = []

    class Client:
        def get_job_info(self, submission_id):
            raise RuntimeError("Request failed with status code 404: does not exist")

        def submit_job(self, **_):
            asked.append(1)
            raise RuntimeError(answer)

    monkeypatch.setattr(ray_jobs, "_make_client", lambda address: Client())
    monkeypatch.setattr(ray_jobs, "SUBMIT_PATIENCE_S", 0.6)
    with pytest.raises(error, match=answer[-6:]):
        ray_jobs.RayJobs("http://x:1", patience=0.6).submit("go", "id", environment={})
    assert (len(asked) == 1) == (error is InputError)


def test_a_head_is_remembered_by_its_group_and_a_stranger_is_never_touched(monkeypatch):
    head = RayHead("http://x:1", ProcessRef(1, 1, "boot:other:1"))
    again = RayHead.from_json(json.loads(json.dumps(head.to_json())))
    assert again == head
    assert not again.alive()
    again.stop()


def test_a_local_head_listens_where_it_is_told_on_free_ports():
    argv = local_head("http://127.0.0.1:9999")
    assert argv[1:5] == ("start", "--head", "--block", "--disable-usage-stats")
    assert argv[argv.index("--dashboard-host") + 1] == "127.0.0.1"
    assert argv[argv.index("--dashboard-port") + 1] == "9999"
    assert argv[argv.index("--port") + 1] != "6379"


def test_without_an_address_a_command_is_started_as_it_is(tmp_path):
    def line(stage, **environ):
        return launchers.command_line(
            ["python", "-m", "trainer", "train", "c.yaml"],
            stage=stage,
            name="demo-round-000",
            state=tmp_path / "s.json",
            cwd=tmp_path,
            environ=environ,
        )

    plain = ["python", "-m", "trainer", "train", "c.yaml"]
    assert line("train") == plain
    assert line("gate", INTRASKILL_RAY_ADDRESS="http://h:8265") == plain
    wrapped = line("train", INTRASKILL_RAY_ADDRESS="http://h:8265", PYTHONHASHSEED="0")
    assert wrapped[:4] == [sys.executable, "-m", "jobs.launchers.ray_job", "run"]
    assert wrapped[wrapped.index("--address") + 1] == "http://h:8265"
    assert wrapped[wrapped.index("--env") + 1] == "PYTHONHASHSEED=0"
    assert wrapped[wrapped.index("--") + 1 :] == plain
    assert "--start-head" in line("train", INTRASKILL_RAY_ADDRESS="local")


def test_the_entry_point_runs_in_its_folder_and_is_what_ray_signals():
    assert ray_job.entrypoint(["python", "a b.py"], Path("/x y")) == (
        "cd '/x y' && exec python 'a b.py'"
    )


def test_a_launch_that_is_refused_starts_nothing(tmp_path, capsys, monkeypatch):
    path = make_launch(tmp_path, batch={"global_batch_size": 60})
    monkeypatch.setattr(ray_job, "RayRun", None)
    assert ray_job.main(["slime", str(path)]) == 2
    assert "batch.updates" in capsys.readouterr().err
    assert not (tmp_path / "save").exists()


def test_a_ready_launch_becomes_a_job_of_its_own_head(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.engines.slime.plan.launch_checks", lambda config, environ: [])
    made = []

    class Fake:
        def __init__(self, job, state):
            made.append((job, state))

        def run(self):
            return 0

    monkeypatch.setattr(ray_job, "RayRun", Fake)
    monkeypatch.setenv("WANDB_API_KEY", "hush")
    path = make_launch(tmp_path, wandb={"use": True})
    assert ray_job.main(["slime", str(path)]) == 0
    job, state = made[0]
    assert job.name == "slime-round-000"
    assert job.entrypoint.startswith(
        f"cd {tmp_path}/slime && exec python3 {tmp_path}/slime/train.py"
    )
    assert job.head[:3] == ("ray", "start", "--head")
    assert job.secrets == {"WANDB_API_KEY": "hush"}
    assert "hush" not in repr(job)
    assert state == tmp_path / "save" / "ray-job.json"
    assert read_json(tmp_path / "save" / "first-step.json") == {"first_step": 1}


def test_submitting_needs_a_cluster(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("trainer.engines.slime.plan.launch_checks", lambda config, environ: [])
    assert ray_job.main(["submit", str(make_launch(tmp_path))]) == 2
    assert "RAY_ADDRESS" in capsys.readouterr().err
