"""Rounds on slime that are stopped, or of which something is killed, in every stage that works."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments import services
from intraskill_web.experiments.models import Attempt, Experiment
from intraskill_web.monitoring.models import MetricPoint
from jobs.plans import plan_of
from jobs.process import KEEPER, STOP_GRACE_S
from jobs.runner import run_attempt
from jobs.stages import slime_train
from jobs.transitions import State
from jobs.watch import Watch
from tests.jobs.holding import HOLD
from tests.jobs.slime_host import document_of, made

Jobs = list[tuple[int, str]]
pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.chaos, pytest.mark.long]
# what the doubles have done when they are interrupted: chats answered, or training steps
AFTER = {"freeze": 12, "train": 1, "validate": 12, "gate": 12, "select": 5}


@pytest.fixture
def experiment(transactional_db: None, home: Path, tmp_path: Path) -> Experiment:
    return made({**document_of(tmp_path), "rounds": 1}, tmp_path)


def stop(experiment: Experiment, _attempt: Attempt) -> None:
    services.stop_round(experiment)


def launcher(attempt: Attempt) -> psutil.Process:
    """What the keeper starts as soon as its group is on record."""
    keeper, ends = psutil.Process(attempt.pid), time.monotonic() + 5
    while not (children := keeper.children()):
        assert time.monotonic() < ends
        time.sleep(0.01)
    return children[0]


def kill_the_launcher(_experiment: Experiment, attempt: Attempt) -> None:
    """What the keeper started; what that started itself lives on."""
    launcher(attempt).kill()


def kill_the_group(_experiment: Experiment, attempt: Attempt) -> None:
    """The keeper too, so nobody says how it ended."""
    assert attempt.pgid
    os.killpg(attempt.pgid, signal.SIGKILL)


def kill_the_server(_experiment: Experiment, attempt: Attempt) -> None:
    """The model that answers, or where none does, what trains."""
    servers = [p for p in psutil.process_iter(["cmdline"]) if _serves(p, attempt)]
    for process in servers or [launcher(attempt)]:
        process.kill()


def _serves(process: psutil.Process, attempt: Attempt) -> bool:
    words = process.info["cmdline"] or []
    folder = str(attempt.stage.round.experiment.folder.parent.parent)
    is_server = "sglang.launch_server" in words and str(KEEPER) not in words
    return is_server and any(folder in word for word in words)


Act = Callable[[Experiment, Attempt], None]


class Disturbed:
    """Carries attempts out, and interrupts each stage once: while the doubles wait, or where
    nothing waits as soon as its command runs.
    """

    def __init__(self, experiment: Experiment, act: Act, hold: Path) -> None:
        self.experiment, self.act, self.hold = experiment, act, hold
        self.ends: dict[str, Attempt] = {}
        self.begun: float | None = None
        self.seconds = 0.0  # the longest until an interrupted attempt was over

    def run(self, job: tuple[int, str]) -> Attempt:
        attempt = Attempt.objects.select_related("stage__round__experiment").get(pk=job[0])
        kind = attempt.stage.kind
        first, reached = kind not in self.ends, self.hold.with_suffix(".reached")
        with pytest.MonkeyPatch.context() as patch:
            if first:
                self.begun = None
                self.hold.write_text(str(AFTER.get(kind, 10**6)))
                patch.setattr(Watch, "beat", self._interrupting(Watch.beat, kind, reached))
            run_attempt(*job)
        if self.begun is not None:
            self.seconds = max(self.seconds, time.monotonic() - self.begun)
        self.hold.unlink(missing_ok=True)
        reached.unlink(missing_ok=True)
        attempt.refresh_from_db()
        self.ends.setdefault(kind, attempt)
        return attempt

    def _interrupting(self, original: Any, kind: str, reached: Path) -> Callable[..., None]:
        def beat(watch: Watch, *, force: bool = False) -> None:
            original(watch, force=force)
            if self.begun is None and not force and (kind not in AFTER or reached.exists()):
                self.begun = time.monotonic()
                self.act(self.experiment, Attempt.objects.get(pk=watch.attempt.pk))

        return beat


@pytest.mark.parametrize("act", [stop, kill_the_launcher, kill_the_group, kill_the_server])
def test_a_round_interrupted_in_every_stage_ends_as_a_quiet_one(
    experiment: Experiment,
    handed_in: Jobs,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    act: Act,
) -> None:
    monkeypatch.setattr(slime_train, "PROGRAM", ("-m", "tests.jobs.fake_slime_round"))
    monkeypatch.setenv(HOLD, str(tmp_path / "hold"))
    disturbed = Disturbed(experiment, act, tmp_path / "hold")
    services.start_round(experiment)
    for job in handed_in:  # grows while it is walked
        attempt = disturbed.run(job)
        if attempt.state != State.SUCCEEDED:
            assert attempt == disturbed.ends[attempt.stage.kind], said(attempt)
            services.resume_round(experiment)
    ended = {kind: attempt.state for kind, attempt in disturbed.ends.items()}
    bad = State.STOPPED if act is stop else State.FAILED
    assert {kind for kind, state in ended.items() if state == bad} >= set(AFTER), ended
    assert disturbed.seconds < (STOP_GRACE_S + 4 if act is stop else 30), disturbed.seconds
    check(experiment)
    assert not [p for p in psutil.process_iter(["cmdline"]) if _left(p, tmp_path)]


def check(experiment: Experiment) -> None:
    """What the quiet round of ``test_slime_rounds`` has, each once."""
    (round_,) = experiment.rounds.all()
    plan = plan_of(round_)
    steps = MetricPoint.objects.filter(round=round_, name="rollout/shopsim/success_rate")
    assert list(steps.order_by("step").values_list("step", flat=True)) == [1, 2]
    played = Episode.objects.filter(round=round_)
    counts = {p: played.filter(purpose=p).count() for p in ("train", "baseline", "bare", "full")}
    assert counts == {"train": 8, "baseline": 8, "bare": 4, "full": 4}
    names = list(played.values_list("path", "episode_id"))
    assert len(names) == len(set(names)), "nothing is there twice"
    assert played.filter(scored=False).count() == 0, "no answer is held against an episode"
    weights = (plan.checkpoint / "export" / "model.safetensors").read_bytes()
    assert weights == b"0 then 2"
    scores = {(s.step, s.arm): s.success for s in experiment.scores.filter(split="val")}
    assert scores == {
        (step, arm): float(arm == "full") for step in (0, 2) for arm in ("bare", "full")
    }
    chunk = round_.gate_runs.get().contributions.get(logical_chunk_id="chunk-a")
    assert (chunk.coefficient or 0) > 0.3 and chunk.status == "selected"


def said(attempt: Attempt) -> tuple[Any, ...]:
    log = attempt.log_file.read_text()[-3000:] if attempt.log_file.exists() else ""
    return attempt.stage.kind, attempt.number, attempt.state, attempt.error, log


def _left(process: psutil.Process, home: Path) -> bool:
    return any(str(home) in word for word in process.info["cmdline"] or [])
