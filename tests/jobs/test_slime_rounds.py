"""Rounds on slime by the same stages, pages and buttons as embedded ones; Ray and Megatron are not
there, everything else is real: hooks, files, server processes, evaluations, gate."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments import services
from intraskill_web.experiments.config_changes import from_dotted, merged
from intraskill_web.experiments.flow import new_round, request
from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.rework import change_of_next, retry_with_changes
from intraskill_web.experiments.services import start_round
from intraskill_web.experiments.sweeps import base_config, start_sweep
from intraskill_web.monitoring.models import MetricPoint, Preflight, UpdatePoint
from intraskill_web.monitoring.preflight.inputs import key_of
from intraskill_web.monitoring.preflight.run import require_ready
from jobs import demo, superseded
from jobs.launchers import ray_left, slime_round
from jobs.launchers.ray_jobs import JobServerGone, JobStatus
from jobs.launchers.ray_left import state_file
from jobs.launchers.ray_run import RayRun
from jobs.launchers.slime_round import host_environment
from jobs.layout import RoundPlan, write_config
from jobs.plans import plan_of
from jobs.runner import run_attempt
from jobs.stages import slime_train
from jobs.transitions import State
from tests.jobs.slime_host import document_of, made
from tests.web.html import Page
from trainer.config_files import load_config, parse_config, read_yaml
from trainer.engines.slime.checkpoints import TRACKER
from trainer.engines.slime.config import SlimeConfig
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import read_json, read_jsonl, write_bytes, write_json, write_text

Jobs = list[tuple[int, str]]
pytestmark = pytest.mark.once  # what differs between databases other tests ask


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    return document_of(tmp_path)


@pytest.fixture
def experiment(
    transactional_db: None, home: Path, document: dict[str, Any], tmp_path: Path
) -> Experiment:
    return made(document, tmp_path)


def test_two_rounds_train_are_analysed_validated_and_gated(
    experiment: Experiment, handed_in: Jobs, monkeypatch: pytest.MonkeyPatch, viewer_client: Client,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(slime_train, "PROGRAM", ("-m", "tests.jobs.fake_slime_round"))
    start_round(experiment)
    for job in handed_in:  # grows while it is walked
        state = run_attempt(*job)
        attempt = attempt_of(job)
        assert state == State.SUCCEEDED, (attempt.stage.kind, attempt.error, log_of(attempt))
    assert len(handed_in) == 2 * 6
    rounds = list(experiment.rounds.order_by("number"))
    first, second = (plan_of(round_) for round_ in rounds)

    steps = MetricPoint.objects.filter(name="rollout/shopsim/success_rate")
    assert list(steps.order_by("step").values_list("step", flat=True)) == [1, 2, 3, 4]
    updates = UpdatePoint.objects.filter(name="train/grad_norm").order_by("update")
    assert list(updates.values_list("update", "step", "round__number")) == [
        (1, 1, 0), (2, 2, 0), (3, 3, 1), (4, 4, 1),
    ]  # fmt: skip
    assert MetricPoint.objects.filter(name="perf/step_time", value=2.5).count() == 4
    stage = rounds[0].stages.get(kind="train")
    assert (stage.done, stage.total, stage.unit) == (2, 2, "step")
    assert stage.outcome["checkpoint_id"].startswith("export-")
    played = Episode.objects.filter(round=rounds[0])
    assert played.filter(purpose="train").count() == 2 * 2 * 2
    assert played.filter(purpose="retry").exists()

    record = read_json(first.checkpoint / "checkpoint.json")
    assert (record["step"], record["rollout_id"], record["first_step"]) == (2, 2, 1)
    weights = (first.checkpoint / "export" / "model.safetensors").read_bytes()
    assert weights == b"0 then 2", "from the converted start"
    assert (second.checkpoint / "export" / "model.safetensors").read_bytes() == b"2 then 4"

    scores = {(s.step, s.arm): s.success for s in experiment.scores.filter(split="val")}
    assert scores == {
        (step, arm): float(arm == "full") for step in (0, 2, 4) for arm in ("bare", "full")
    }, "chunk-a tells the served model to shop well"
    served = Episode.objects.exclude(purpose__in=("train", "retry"))
    checkpoints = set(served.values_list("checkpoint", flat=True))
    assert record["checkpoint_id"] in checkpoints and len(checkpoints) == 3
    chunk = rounds[0].gate_runs.get().contributions.get(logical_chunk_id="chunk-a")
    assert (chunk.coefficient or 0) > 0.3 and chunk.status == "selected"
    assert not list(first.folder.glob("serving/*/server.json")), "no server is left"
    assert {file.name for file in (tmp_path / "host" / "hf").iterdir()} == {
        "config.json", "model.safetensors",
    }, "the start model may lie where nothing can be written"  # fmt: skip

    episode = played.filter(purpose="train")[0]
    replay = viewer_client.get(f"/episodes/{episode.pk}/replay/").content.decode()
    assert "Checkpoints of slime are played through a server" in replay
    for page in ("", "rounds/0/", "rounds/1/", "rounds/0/gate/", "next/", "preflight/"):
        answer = viewer_client.get(f"/experiments/large/{page}")
        assert answer.status_code in (200, 403), page  # a viewer plans no round


def attempt_of(job: tuple[int, str]) -> Attempt:
    return Attempt.objects.select_related("stage").get(pk=job[0])


def log_of(attempt: Attempt) -> str:
    return attempt.log_file.read_text()[-2000:] if attempt.log_file.exists() else ""


def test_the_launch_file_says_steps_groups_optimiser_and_sampling(experiment: Experiment) -> None:
    frozen = ExperimentConfig.model_validate(experiment.config)
    groups = frozen.train.rollout
    assert (frozen.train.steps, groups.groups_kept, groups.groups_per_wave) == (2, 1, 2)
    assert (frozen.temperature, frozen.max_new_tokens) == (0.6, 4096)
    assert frozen.train.optimiser.learning_rate == 1e-6
    launch = load_config(experiment.folder / "start" / "launch.yaml", SlimeConfig)
    assert launch.paths.hooks == experiment.folder / "start" / "hooks.yaml"
    assert launch.paths.slime.is_absolute() and launch.paths.slime.is_dir()


@pytest.mark.django_db
def test_what_an_experiment_says_itself_counts_before_its_launch_file(
    document: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    said = {"train": {"steps": 3, "optimiser": {"learning_rate": 2e-6}}, "temperature": 0.9}
    frozen = ExperimentConfig.model_validate(made({**document, **said}, tmp_path).config)
    assert (frozen.train.steps, frozen.train.optimiser.learning_rate) == (3, 2e-6)
    assert (frozen.temperature, frozen.max_new_tokens) == (0.9, 4096)
    assert frozen.train.rollout.groups_per_wave == 2, "of the launch file"


def test_the_same_file_goes_on_with_its_experiment_and_another_launch_makes_another(
    experiment: Experiment, handed_in: Jobs, document: dict[str, Any], tmp_path: Path
) -> None:
    config = parse_config(document, ExperimentConfig, file=tmp_path / "large.yaml")
    assert demo.run_once(config) == experiment
    launch = tmp_path / "host" / "launch.yaml"
    launch.write_text(yaml.safe_dump({**read_yaml(launch), "cluster": {"num_gpus": 8}}))
    assert demo.run_once(config).name == "large-2"


def test_arms_of_a_sweep_begin_from_an_experiment_and_differ_in_training(
    experiment: Experiment, tmp_path: Path
) -> None:
    runs = experiment.folder.parent
    base = base_config("large")
    start_sweep("arms", base, arms=["published", "plain-grpo"], seeds=[1])
    plain = Experiment.objects.get(arm="plain-grpo")
    assert plain.config["train"]["rollout"]["full_skill_retry"] is False
    export = runs / plain.name / "start" / "checkpoint" / "export"
    assert (export / "config.json").resolve() == tmp_path / "host" / "hf" / "config.json"
    launches = [load_config(f, SlimeConfig) for f in runs.glob("arms-*/start/launch.yaml")]
    assert {launch.paths.hooks.parent.parent.parent for launch in launches} == {runs}
    assert len({launch.paths.hooks for launch in launches}) == 2


def test_a_round_that_was_changed_trains_as_it_says(experiment: Experiment) -> None:
    config = ExperimentConfig.model_validate(experiment.config)
    optimiser = config.train.optimiser.model_copy(update={"learning_rate": 3e-6})
    train = config.train.model_copy(update={"optimiser": optimiser, "steps": 5})
    changed = config.model_copy(update={"train": train, "temperature": 0.8})
    plan = RoundPlan(changed, experiment.folder, 0, 2)
    (command,) = slime_train.commands(plan)
    launch = command.parts[0].config
    assert isinstance(launch, SlimeConfig)
    assert (launch.optimiser.lr, launch.sampling.temperature) == (3e-6, 0.8)
    assert launch.sampling.seed == config.seed, "arms of a sweep differ by it"
    assert (launch.batch.num_rollout, launch.batch.global_batch_size) == (6, 2)
    assert launch.checkpoints.save == plan.folder / "train" / "megatron"


def test_training_again_with_other_settings_begins_where_the_round_began(
    experiment: Experiment, handed_in: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slime_train, "PROGRAM", ("-c", "raise SystemExit(2)"))
    train = begun_at_train(experiment)
    plan = plan_of(train.round)
    file = plan.config_file("train", "train")
    assert run_attempt(*handed_in[-1]) == State.FAILED
    write_text(plan.folder / "train" / "megatron" / TRACKER, "1")
    services.resume_round(experiment)
    assert run_attempt(*handed_in[-1]) == State.FAILED
    assert load_config(file, SlimeConfig).checkpoints.load == plan.folder / "train" / "megatron"

    retry_with_changes(train, from_dotted({"train.optimiser.learning_rate": 3e-6}))
    assert run_attempt(*handed_in[-1]) == State.FAILED
    launch = load_config(file, SlimeConfig)
    assert launch.checkpoints.load == tmp_path / "host" / "dist"
    assert (launch.optimiser.lr, launch.checkpoints.save.exists()) == (3e-6, False)


ENDS = """
import sys
from pathlib import Path
state = Path(sys.argv[2])
assert (state.parent / "train" / "old").exists(), "nothing is set aside before the job is over"
print("stopping", state.read_text())
state.unlink()
"""


def test_a_retry_with_changes_ends_the_job_that_a_killed_launcher_left(
    experiment: Experiment, handed_in: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slime_train, "PROGRAM", ("-c", "raise SystemExit(2)"))
    train = begun_at_train(experiment)
    plan = plan_of(train.round)
    assert run_attempt(*handed_in[-1]) == State.FAILED
    write_text(plan.folder / "train" / "old", "")
    left = {"submission_id": "slime-1", "address": "http://head:8265", "command_sha256": "x"}
    write_json(state_file(plan.folder, "train"), left)
    changed = from_dotted({"train.optimiser.learning_rate": 3e-6})
    for name in ("", "slime-2"):
        with pytest.raises(InputError, match="job slime-1 of an attempt before may still run"):
            retry_with_changes(train, changed, stop_job=name)
    assert train.attempts.count() == 1

    monkeypatch.setattr(superseded, "END_JOB", ("-c", "raise SystemExit('the cluster is away')"))
    retry_with_changes(train, changed, stop_job="slime-1")
    assert run_attempt(*handed_in[-1]) == State.FAILED
    failed = train.attempts.get(number=2)
    assert "could not be ended: the cluster is away" in failed.error
    assert (plan.folder / "train" / "old").exists(), "it may still write there"

    monkeypatch.setattr(superseded, "END_JOB", ("-c", ENDS))
    services.resume_round(experiment)
    assert run_attempt(*handed_in[-1]) == State.FAILED
    assert not state_file(plan.folder, "train").exists()
    assert not (plan.folder / "train" / "old").exists()
    assert "stopping" in log_of(train.attempts.get(number=3))
    event = AuditEvent.objects.get(action="stage.retry")
    assert event.detail["stop_job"] == "slime-1"


def test_a_retry_without_a_change_of_training_goes_on_with_the_job_that_is_left(
    experiment: Experiment, handed_in: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slime_train, "PROGRAM", ("-c", "raise SystemExit(2)"))
    monkeypatch.setattr(superseded, "END_JOB", ("-c", "raise SystemExit('it was ended')"))
    train = begun_at_train(experiment)
    assert run_attempt(*handed_in[-1]) == State.FAILED
    state = state_file(train.round.folder, "train")
    write_json(state, {"submission_id": "slime-1", "address": "http://head:8265"})
    retry_with_changes(train, from_dotted({"gate.min_coverage": 0.6}))
    assert run_attempt(*handed_in[-1]) == State.FAILED
    assert state.exists() and train.attempts.get(number=2).exit_code == 2


def test_the_page_of_a_retry_names_the_job_that_it_stops(
    experiment: Experiment,
    handed_in: Jobs,
    operator_client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slime_train, "PROGRAM", ("-c", "raise SystemExit(2)"))
    train = begun_at_train(experiment)
    assert run_attempt(*handed_in[-1]) == State.FAILED
    state = state_file(train.round.folder, "train")
    write_json(state, {"submission_id": "slime-1", "address": "http://head:8265"})
    path = "/experiments/large/rounds/0/stages/train/retry/"
    assert "slime-1" not in operator_client.get(path).content.decode()
    changed = {"config": "train: {optimiser: {learning_rate: 3.0e-6}}"}
    shown = operator_client.post(path, changed)
    page = Page(shown.content.decode())
    boxes = [a for tag, a in page.elements if tag == "input" and a.get("name") == "stop_job"]
    assert [box["value"] for box in boxes] == ["slime-1"]
    assert "http://head:8265" in page.text and page.policy_faults() == []
    seen = {**changed, "seen": shown.context["draft"].seen}
    refused = operator_client.post(path, seen)
    assert refused.status_code == 409 and "slime-1" in refused.content.decode()
    as_json = operator_client.post(f"{path}?format=json", changed)
    assert as_json.status_code == 409 and "stop_job" in as_json.json()["error"]
    told = operator_client.get(f"{path}?format=json").json()
    assert "left_job" not in told
    write_text(state, "{")
    assert operator_client.post(path, changed).status_code == 409
    write_json(state, {"submission_id": "slime-1", "address": "http://head:8265"})
    assert operator_client.post(path, {**seen, "stop_job": "slime-1"}).status_code == 302


def begun_at_train(experiment: Experiment) -> Stage:
    """Round 0 with its first stage done and an attempt at its training."""
    round_ = new_round(experiment, 0)
    round_.stages.filter(kind="freeze").update(state=State.SUCCEEDED)
    plan = plan_of(round_)
    for path in (plan.curriculum, plan.bank):
        write_json(path, {})
    train = round_.stages.get(kind="train")
    request(train)
    return train


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"global_batch_size": 64}, r"batch\.global_batch_size: must divide the 2 episodes"),
        ({"over_sampling_batch_size": 1, "rollout_batch_size": 2}, "groups_per_wave must be"),
    ],
)
def test_a_launch_file_whose_numbers_do_not_fit_is_refused_by_name(
    document: dict[str, Any], tmp_path: Path, home: Path, batch: dict[str, int], words: str
) -> None:
    file = tmp_path / "host" / "launch.yaml"
    launch = read_yaml(file)
    launch["batch"].update(batch)
    file.write_text(yaml.safe_dump(launch))
    with pytest.raises(InputError, match=words) as refused:
        made(document, tmp_path)
    assert str(file) in str(refused.value)
    assert not (home / "runs" / "large").exists()


@pytest.mark.django_db
def test_a_launch_or_hooks_file_that_is_missing_or_lacks_a_key_is_named(
    document: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    hooks, launch = tmp_path / "host" / "hooks.yaml", tmp_path / "host" / "launch.yaml"
    values = read_yaml(hooks)
    hooks.write_text(yaml.safe_dump({**values, "shopsim_max_steps": 0}))
    with pytest.raises(InputError, match=f"{hooks}: shopsim_max_steps: "):
        made(document, tmp_path)
    hooks.unlink()
    with pytest.raises(InputError, match=f"{hooks}: paths.custom_config: no such"):
        made(document, tmp_path)
    launch.unlink()
    with pytest.raises(InputError, match=f"{launch}: slime.launch: no such"):
        made(document, tmp_path)


@pytest.mark.parametrize("key", ["train.optimiser.gradient_clip", "threads"])
def test_what_slime_has_no_setting_for_cannot_be_changed(experiment: Experiment, key: str) -> None:
    with pytest.raises(InputError, match="slime reads no such setting") as refused:
        change_of_next(experiment, merged(experiment.config, from_dotted({key: 2})))
    assert key in str(refused.value)


def test_a_host_changes_nothing_of_a_frozen_launch_but_where_it_runs() -> None:
    environ = {
        "TRAIN_SAVE": "/elsewhere", "NUM_ROLLOUT": "9", "CUDA_VISIBLE_DEVICES": "4,5",
        "WANDB_API_KEY": "secret", "INTRASKILL_RAY_ADDRESS": "http://head:8265",
    }  # fmt: skip
    assert host_environment(environ) == {
        "CUDA_VISIBLE_DEVICES": "4,5",
        "WANDB_API_KEY": "secret",
        "INTRASKILL_RAY_ADDRESS": "http://head:8265",
        "RAY_ADDRESS": "http://head:8265",
    }
    assert "RAY_ADDRESS" not in host_environment({"INTRASKILL_RAY_ADDRESS": "local"})


@pytest.fixture
def trained(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> tuple[RoundPlan, list[str]]:
    """A round whose last step is saved, and what its launcher is called with."""
    plan = RoundPlan(ExperimentConfig.model_validate(experiment.config), experiment.folder, 0, 2)
    slime_train.prepare(plan)
    (command,) = slime_train.commands(plan)
    file = plan.config_file("train", "train")
    write_config(file, command.parts[0].config)
    write_text(plan.folder / "train" / "megatron" / TRACKER, "2")
    write_json(plan.folder / "train" / "hf" / "step-2" / "config.json", {})

    def train(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(slime_round, "RayRun", train)
    return plan, [*command.arguments, str(file)]


def test_a_round_whose_last_step_is_saved_is_not_trained_again(
    trained: tuple[RoundPlan, list[str]],
) -> None:
    plan, arguments = trained
    export = plan.folder / "train" / "hf" / "step-2"
    assert slime_round.main(arguments) == 70, "the weights were not all written"
    write_bytes(export / "model.safetensors", b"weights")
    assert slime_round.main(arguments) == 0
    assert read_json(plan.checkpoint / "checkpoint.json")["rollout_id"] == 2
    assert (plan.checkpoint / "export").resolve() == export.resolve()


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_a_job_told_after_its_launcher_was_killed_is_kept_and_its_head_ends(
    trained: tuple[RoundPlan, list[str]], monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    plan, arguments = trained
    write_bytes(plan.folder / "train" / "hf" / "step-2" / "model.safetensors", b"weights")
    state = Path(arguments[arguments.index("--state") + 1])
    write_json(state, {"submission_id": "round-0", "address": "http://head:8265"})

    class Jobs:
        def __init__(self, address: str) -> None:
            assert address == "http://head:8265"

        def status(self, _name: str) -> JobStatus:
            return JobStatus("succeeded")

        def logs(self, _name: str) -> str:
            if is_gone:
                raise JobServerGone("nobody answers")
            return "(Actor) model.py:918 - step 2: {'train/loss': 0.5}\nbye"

    monkeypatch.setattr(slime_round, "RayJobs", Jobs)
    monkeypatch.setattr(ray_left, "RayJobs", Jobs)
    assert slime_round.main(arguments) == 0
    updates = [line["update"] for line in read_jsonl(plan.folder / "train" / "updates.jsonl")]
    assert updates == ([] if is_gone else [2])
    assert not state.exists()


def test_a_job_that_still_exports_after_its_last_step_is_followed_and_not_ended(
    trained: tuple[RoundPlan, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, arguments = trained
    state = Path(arguments[arguments.index("--state") + 1])
    write_json(state, {"submission_id": "round-0", "address": "http://head:8265"})

    class Exporting:
        def __init__(self, _address: str) -> None: ...

        def status(self, _name: str) -> JobStatus:
            return JobStatus("running")

    class Followed:
        def __init__(self, _job: object, known: Path, _output: object) -> None:
            assert known == state

        def run(self) -> int:
            write_bytes(plan.folder / "train" / "hf" / "step-2" / "model.safetensors", b"weights")
            return 0

    monkeypatch.setattr(slime_round, "RayJobs", Exporting)
    monkeypatch.setattr(slime_round, "RayRun", Followed)
    assert slime_round.main(arguments) == 0
    assert read_json(plan.checkpoint / "checkpoint.json")["rollout_id"] == 2


def test_a_round_finds_its_job_after_that_saved_and_no_job_of_other_settings(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slime_round, "RayRun", Remembered)
    monkeypatch.setattr(Remembered, "known", [], raising=False)
    config = ExperimentConfig.model_validate(experiment.config)
    groups = config.train.rollout.model_copy(update={"max_turns": 5})
    changed = config.train.model_copy(update={"rollout": groups})
    other = config.model_copy(update={"train": changed})
    for settings, iteration in ((config, None), (config, "1"), (other, "1")):
        plan = RoundPlan(settings, experiment.folder, 0, 2)
        if iteration:
            write_text(plan.folder / "train" / "megatron" / TRACKER, iteration)
        slime_train.prepare(plan)
        (command,) = slime_train.commands(plan)
        file = plan.config_file("train", "train")
        write_config(file, command.parts[0].config)
        assert slime_round.main([*command.arguments, str(file)]) == 1
    first, resumed, changed_job = Remembered.known
    assert "--load" in first[0] and first[0] != resumed[0], "it goes on from what it saved"
    assert first[1] == resumed[1] != changed_job[1]


class Remembered(RayRun):
    """In the place of a run: what a job is called by, and how it is known again."""

    known: ClassVar[list[tuple[str, str]]]

    def run(self) -> int:
        self.known.append((self.job.entrypoint, self._command()))
        return 1


def test_a_look_counts_only_for_the_launch_that_was_looked_at(experiment: Experiment) -> None:
    before = key_of(experiment, 0)
    for name in ("launch", "hooks"):
        file = experiment.folder / "start" / f"{name}.yaml"
        file.write_text(file.read_text() + "# other\n")
        before, after = key_of(experiment, 0), before
        assert before != after, name


def test_the_preflight_looks_at_model_and_launch(
    experiment: Experiment, settings: Any, tmp_path: Path
) -> None:
    settings.INTRASKILL_PREFLIGHT = True
    require_ready(experiment)
    names = {check["name"] for check in Preflight.objects.get().checks}
    assert {"checkpoint", "files.slime_train", "round.fresh", "slots.budget"} <= names
    (tmp_path / "host" / "hf" / "model.safetensors").unlink()
    shutil.rmtree(tmp_path / "host" / "Megatron-LM")
    Preflight.objects.all().delete()
    with pytest.raises(InputError, match="no Hugging Face checkpoint") as refused:
        require_ready(experiment)
    assert "1 more" in str(refused.value)
    remedies = {check["name"]: check["remedy"] for check in Preflight.objects.get().checks}
    assert "set paths.megatron_path" in remedies["files.megatron"], "no variable is read here"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slime": None}, "slime must be set exactly when the engine is 'slime'"),
        ({"engine": "local"}, "slime must be set exactly when the engine is 'slime'"),
        ({"analyst": {"kind": "rule_based", "watch": True}}, "analyst.watch works beside"),
        ({"start": {"skillbank": "host/bank.json", "checkpoint": "host"}}, "no Hugging Face check"),
        ({"start": {"skillbank": "host", "checkpoint": "host/hf"}}, "is no file"),
        (
            {"start": {"skillbank": "host/bank.json", "checkpoint": "host/bank.json"}},
            "is no folder",
        ),
        ({"threads": 2}, "slime reads no such setting"),
        ({"train": {"optimiser": {"warmup_updates": 3}}}, "slime reads no such setting"),
        ({"train": {"optimiser": {"updates_per_step": 2}}}, "must divide the 1 groups of a step"),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_made(
    document: dict[str, Any], tmp_path: Path, home: Path, changes: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        made({**document, **changes}, tmp_path)
    assert not Experiment.objects.exists()
    assert not (home / "runs" / "large").exists()
