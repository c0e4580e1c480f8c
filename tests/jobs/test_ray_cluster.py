"""A real Ray cluster on this machine: one head, a second node, jobs that end in every way."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from jobs import process
from jobs.launchers.ray_head import RayHead, answers, local_head, ray_program, start_head
from tests.jobs.homes import Running, manage
from tests.ports import free_port
from trainer.rollout import traces

pytestmark = [
    pytest.mark.slow,
    pytest.mark.chaos,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason='Ray is not installed here: pip install "ray[default]"',
    ),
]
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 180.0
SECOND_NODE = "second_node"


def until(condition: Callable[[], object], what: str, limit: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder():
    """A short path: Ray's sockets lie below it."""
    path = Path(tempfile.mkdtemp(prefix="rh", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def head(folder):
    """A head of our own; at the end nothing of it is left."""
    address = f"http://127.0.0.1:{free_port()}"
    argv = [*local_head(address), "--temp-dir", str(folder), "--num-cpus", "2"]
    argv += ["--object-store-memory", "100000000"]
    made = start_head(argv, address, log=folder / "head.log", environ={}, register=lambda _: None)
    yield made
    pids = [p.pid for p in psutil.process_iter() if safe_group(p.pid) == made.ref.pgid]
    made.stop()
    assert not made.alive()
    assert not any(psutil.pid_exists(pid) and process.start_token(pid) for pid in pids)


def safe_group(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


class Followed:
    """A launcher process as the runner starts it."""

    def __init__(self, head: RayHead, folder: Path, *argv: str, state: Path, options=()):
        self.log = Path(tempfile.mkstemp(dir=folder, suffix=".log")[1])
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jobs.launchers.ray_job", "run"),
                    *("--address", head.address, "--state", str(state), "--cwd", str(ROOT)),
                    *options,
                    *("--", *argv),
                ],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> None:
        until(lambda: text in self.output or self.process.poll() is not None, text)
        assert text in self.output

    def end(self) -> int:
        return self.process.wait(timeout=LIMIT_S)


@pytest.fixture
def follow(head, folder, tmp_path):
    """Start a command as a followed job; none is left behind."""
    started = []

    def start(*argv, state=tmp_path / "state.json", options=()):
        started.append(Followed(head, folder, *argv, state=state, options=options))
        return started[-1]

    yield start
    for item in started:
        if item.process.poll() is None:
            item.process.terminate()
            item.end()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-u", "-c", code)


def test_output_environment_folder_and_exit_code_come_through(follow):
    job = follow(
        *python("import os; print('here', os.getcwd(), os.environ['MARK']); raise SystemExit(3)"),
        options=("--env", "MARK=yes"),
    )
    assert job.end() == 3, job.output
    assert f"here {ROOT} yes" in job.output
    assert "ended with exit code 3" in job.output


def test_output_is_shown_while_the_job_runs_and_sigterm_stops_it(follow, tmp_path):
    mark = tmp_path / "mark"
    job = follow(
        *python(
            "import signal, sys, time\n"
            f"def leave(*_):\n    open({str(mark)!r}, 'w').write('asked'); sys.exit(143)\n"
            "signal.signal(signal.SIGTERM, leave)\n"
            "print('at work'); time.sleep(600)"
        )
    )
    job.says("at work")
    asked = time.monotonic()
    job.process.send_signal(signal.SIGTERM)
    assert job.end() == 143
    assert mark.read_text() == "asked"
    assert time.monotonic() - asked < 60  # the machine may be busy; a stop is asked for at once


def test_a_job_outlives_its_killed_launcher_and_the_next_one_finds_it(follow, tmp_path):
    gate, count = tmp_path / "gate", tmp_path / "count"
    command = python(
        "import pathlib, time\n"
        f"open({str(count)!r}, 'a').write('x')\n"
        "print('begun')\n"
        f"gate = pathlib.Path({str(gate)!r})\n"
        "while not gate.exists(): time.sleep(0.1)\n"
        "print('finished')"
    )
    first = follow(*command)
    first.says("begun")
    first.process.kill()
    first.end()
    second = follow(*command)
    second.says("found job")
    gate.touch()
    assert second.end() == 0
    assert "begun" in second.output and "finished" in second.output
    assert count.read_text() == "x"


def test_a_job_whose_node_dies_is_lost_and_can_be_done_again(follow, head, folder, tmp_path):
    mark = tmp_path / "mark"
    command = python(
        "import pathlib, time\n"
        f"mark = pathlib.Path({str(mark)!r})\n"
        "again = mark.exists(); mark.touch()\n"
        "print('on the second node')\n"
        "time.sleep(0 if again else 600)"
    )
    options = ("--resources", json.dumps({SECOND_NODE: 1}))
    node = start_node(head, folder)
    try:
        job = follow(*command, options=options)
        job.says("on the second node")
        process.send(node, signal.SIGKILL)
        assert job.end() == 70
        assert "was lost" in job.output
    finally:
        process.end_group(node, grace_s=0.0)
    node = start_node(head, folder)
    try:
        assert follow(*command, options=options).end() == 0
    finally:
        process.end_group(node, grace_s=0.0)


def start_node(head: RayHead, folder: Path) -> process.ProcessRef:
    """A second node of the cluster, with a resource that only it has."""
    log = folder / f"node-{time.monotonic_ns()}.log"
    found = re.search(r"--address='([^']+)'", (folder / "head.log").read_text())
    assert found is not None
    return process.start(
        [
            *(ray_program(), "start", "--block", "--disable-usage-stats", f"--address={found[1]}"),
            *("--num-cpus", "1", "--resources", json.dumps({SECOND_NODE: 1})),
            *("--object-store-memory", "100000000"),
            *("--dashboard-agent-listen-port", str(free_port())),
        ],
        cwd=folder,
        log=log,
        exit_file=log.with_suffix(".exit"),
        register=lambda _: None,
    )


def test_a_round_of_training_on_ray_ends_as_it_does_without(follow, tmp_path):
    configs = {}
    for name in ("ray", "local"):
        folder = tmp_path / name
        configs[name] = write_training(folder)
    assert follow(sys.executable, "-m", "trainer", "train", str(configs["ray"])).end() == 0
    subprocess.run(
        [sys.executable, "-m", "trainer", "train", str(configs["local"])],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    records = [
        json.loads((tmp_path / name / "train" / "checkpoint" / "checkpoint.json").read_text())
        for name in ("ray", "local")
    ]
    assert records[0]["checkpoint_id"] == records[1]["checkpoint_id"]


def write_training(folder: Path) -> Path:
    """One step of the smallest round of the shipped world."""
    import yaml

    from trainer.skills.bank import load_bank
    from trainer.skills.curriculum import write_curriculum
    from trainer.skills.curriculum_build import build_curriculum

    mini = ROOT / "configs" / "mini"
    curriculum = build_curriculum(
        load_bank(mini / "skillbank.json"),
        round_id="round-000",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
    )
    write_curriculum(folder / "curriculum.json", curriculum)
    path = folder / "train.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "stage": "train",
                "name": "t",
                "round_id": "round-000",
                "output_dir": str(folder / "train"),
                "policy": {"checkpoint": str(mini / "checkpoint"), "threads": 1},
                "skillbank": str(mini / "skillbank.json"),
                "curriculum": str(folder / "curriculum.json"),
                "steps": 1,
                "rollout": {"groups_per_wave": 2, "groups_kept": 2, "episodes_per_group": 2},
                "optimiser": {"updates_per_step": 1},
            }
        )
    )
    return path


def test_a_launcher_can_start_a_head_of_its_own_and_leaves_nothing(folder, tmp_path):
    address = f"http://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "jobs.launchers.ray_job", "run", "--start-head"),
            *("--address", address, "--state", str(tmp_path / "state.json")),
            *("--", *python("print('inside')")),
        ],
        cwd=ROOT,
        env={**os.environ, "RAY_TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inside" in done.stdout
    assert not answers(address)
    assert not (tmp_path / "state.json").exists()


DEMO = ("demo", "--quick", "--rounds", "1", "--seed", "7", "--wait", "--json")


def test_a_round_through_the_queue_trains_on_ray_and_ends_in_the_same_documents(head, folder):
    """Queue, worker, stage, Ray job, files, rows: nothing of the round depends on where it ran."""
    plain = Running.start(folder / "plain", *DEMO).finish()
    home = folder / "on-ray"
    on_ray = Running.start(home, *DEMO, INTRASKILL_RAY_ADDRESS=head.address).finish()
    for name in ("curriculum", "checkpoint", "metrics", "episodes"):
        hashes = [lines[-1]["rounds"][0]["hashes"][name] for lines in (plain, on_ray)]
        assert hashes[0] == hashes[1], name
    logs = [path.read_text() for path in (home / "logs").glob("*.log")]
    [log] = [text for text in logs if "[ray] submitted job" in text]
    assert "trainer train" in log
    assert not list((home / "runs").rglob("ray-job-*.json"))


def test_a_round_whose_launcher_and_trainer_are_killed_resumes_on_ray(head, folder):
    """The launcher dies: the job goes on. The trainer dies too: a new job continues its files."""
    home = folder / "killed"
    round_ = home / "runs" / "quick-7" / "round-000"
    run = Running.start(home, "demo", *DEMO[1:], INTRASKILL_RAY_ADDRESS=head.address)
    until((round_ / "train" / "progress.json").exists, "training")
    for process_ in psutil.process_iter(["cmdline"]):
        line = " ".join(process_.info["cmdline"] or ())
        if str(home) in line and "trainer train" in line:
            process_.kill()
    manage_until_done(run, home, head)
    plain = json.loads(
        manage(folder / "plain", "round_status", "quick-7", "--round", "0", "--json").stdout
    )
    killed = json.loads(manage(home, "round_status", "quick-7", "--round", "0", "--json").stdout)
    assert killed["state"] == plain["state"] == "succeeded"
    for name in ("groups.jsonl", "checkpoint/checkpoint.json"):
        assert without_times(home, name) == without_times(folder / "plain", name)


def manage_until_done(run: Running, home: Path, head: RayHead) -> None:
    """Wait for the demo; a stage that failed because its process was killed is resumed."""
    deadline = time.monotonic() + 2 * LIMIT_S
    while run.process.poll() is None and time.monotonic() < deadline:
        status = manage(home, "round_status", "quick-7", "--round", "0", "--json")
        if status.returncode == 0 and json.loads(status.stdout)["state"] in ("failed", "lost"):
            manage(home, "round_resume", "quick-7", "--round", "0", "--json")
        time.sleep(1)
    if run.process.returncode != 0:  # the demo gives up on a failed stage; its home goes on
        again = Running.start(home, *DEMO, INTRASKILL_RAY_ADDRESS=head.address)
        again.finish()


def without_times(home: Path, name: str) -> object:
    """A document of training as comparisons see it."""
    path = home / "runs" / "quick-7" / "round-000" / "train" / name
    if path.suffix == ".jsonl":
        return [traces.without_times(json.loads(line)) for line in path.read_text().splitlines()]
    return traces.without_times(json.loads(path.read_text()))
