"""A round of training on the embedded shop, with an engine whose weights are one number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.fakes import FakeEngine, FakePolicy
from trainer import files
from trainer.config import OptimiserConfig, PolicyConfig, RolloutConfig, TrainConfig
from trainer.errors import IncompleteError, InputError
from trainer.grpo import loop, publish
from trainer.grpo.loop import TrainingRun
from trainer.grpo.publish import Counters
from trainer.rollout.policy import Conversation, ModelTurn
from trainer.rollout.traces import without_times
from trainer.shop.world import World
from trainer.sinks import file as file_sink
from trainer.skills.bank import SkillBank
from trainer.skills.curriculum import Curriculum
from trainer.skills.curriculum_build import build_curriculum
from trainer.skills.masks import treatment
from trainer.skills.types import Chunk


def curriculum() -> Curriculum:
    chunks = tuple(
        Chunk(name, text, metadata={"estimated_effect": effect})
        for name, text, effect in (
            ("brand", "put the preferred brand in the query", 0.2),
            ("calm", "think slowly", 0.1),
        )
    )
    return build_curriculum(
        SkillBank(chunks, "0" * 64),
        round_id="round-000",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
        seed=7,
    )


def training_run(world: World, folder: Path, **changes: Any) -> TrainingRun:
    config = TrainConfig(
        stage="train",
        name="test",
        round_id="round-000",
        output_dir=folder,
        seed=3,
        policy=PolicyConfig(checkpoint=folder / "start"),
        skillbank=folder / "bank.json",
        curriculum=folder / "curriculum.json",
        steps=2,
        rollout=RolloutConfig(groups_per_wave=6, groups_kept=4, episodes_per_group=4),
        optimiser=OptimiserConfig(updates_per_step=2),
    )
    return TrainingRun(
        config=config,
        world=world,
        engine=changes.pop("engine", FakeEngine()),
        curriculum=curriculum(),
        tasks=world.split("train"),
        start=changes.pop("start", Counters()),
    )


def documents(folder: Path) -> dict[str, Any]:
    """Everything a round left behind, without times."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".jsonl":
            found[name] = [without_times(json.loads(line)) for line in path.open()]
        elif path.suffix == ".gz":
            found[name] = [without_times(trace) for trace in publish.read_traces(path)]
        elif path.is_file() and path.name != "progress.json":
            found[name] = without_times(json.loads(path.read_text()))
    found["state.pt"]["counters"].pop("lengths")  # times in the lines have varying widths
    return found


def test_a_round_leaves_the_documents_of_the_contract(mini: World, tmp_path: Path) -> None:
    record = training_run(mini, tmp_path).run()
    assert record["status"] == "complete"
    assert record["last_step"] == 2
    found = documents(tmp_path)
    assert [line["step"] for line in found["metrics.jsonl"]] == [1, 2]
    assert [line["update"] for line in found["updates.jsonl"]] == [1, 2, 3, 4]
    assert [line["group_index"] for line in found["groups.jsonl"]] == list(range(12))
    for step in (1, 2):
        traces = found[f"steps/step-{step:06d}.jsonl.gz"]
        trained = [t for t in traces if t["training"]["purpose"] == "train"]
        assert [t["job"]["sample_id"] for t in trained] == list(range((step - 1) * 24, step * 24))
        assert all(t["training"]["purpose"] == "retry" for t in traces[24:])
        assert {t["training"]["weight_version"] for t in traces} == {(step - 1) * 2}
    assert found["checkpoint/checkpoint.json"]["next_group"] == 12


def test_every_update_gets_whole_groups_and_every_kept_episode_once(
    mini: World, tmp_path: Path
) -> None:
    engine = FakeEngine()
    training_run(mini, tmp_path, engine=engine).run()
    lines = [json.loads(line) for line in (tmp_path / "groups.jsonl").open()]
    kept = [line for line in lines if line["admitted"]]
    assert [len(batch) for batch in engine.batches] == [8] * 4
    given = [item.advantage for batch in engine.batches for item in batch]
    assert given == [value for line in kept for value in line["advantages"]]


def test_rounds_count_on_from_their_starting_checkpoint(mini: World, tmp_path: Path) -> None:
    start = Counters(step=20, next_group=640, updates=40)
    training_run(mini, tmp_path, start=start).run()
    found = documents(tmp_path)
    assert [line["step"] for line in found["metrics.jsonl"]] == [21, 22]
    assert found["groups.jsonl"][0]["group_index"] == 640
    assert found["updates.jsonl"][0]["update"] == 41
    first = found["steps/step-000021.jsonl.gz"][0]
    assert first["episode_id"] == "train-group-000000640-sample-000002560"


def test_siblings_share_the_treatment_that_the_group_number_draws(
    mini: World, tmp_path: Path
) -> None:
    training_run(mini, tmp_path).run()
    for trace in documents(tmp_path)["steps/step-000001.jsonl.gz"]:
        shown = [chunk["skill_id"] for chunk in trace["selected_skills"]]
        assignment = trace["provenance"]["skills"]["assignment"]
        assert shown == assignment["skill_ids"]
        if trace["training"]["purpose"] == "retry":
            assert shown == ["brand", "calm"]
            assert assignment["mode"] == "diagnostic_full_skill"
        else:
            drawn = treatment(curriculum(), trace["training"]["group_index"])
            assert shown == list(drawn.skill_ids)
            assert assignment["mode"] == drawn.mode


def test_retries_never_reach_the_update(mini: World, tmp_path: Path) -> None:
    engine = FakeEngine()
    training_run(mini, tmp_path, engine=engine).run()
    traces = documents(tmp_path)["steps/step-000001.jsonl.gz"]
    assert len(traces) > 24, "this test needs a retry"
    assert sum(len(batch) for batch in engine.batches[:2]) == 4 * 4


class AbortingEngine(FakeEngine):
    """Aborts the first turn of some groups' first episodes."""

    def __init__(self, groups: Callable[[int], bool]) -> None:
        super().__init__()
        self._groups = groups
        self.policy = FakePolicy(self._answer_or_abort)

    def _answer_or_abort(self, conversation: Conversation, turn: int) -> ModelTurn:
        purpose, _, group, sample = conversation.noise_key.split(":")
        first = int(sample) % 4 == 0
        if purpose == "train" and turn == 0 and first and self._groups(int(group)):
            return ModelTurn("", "abort")
        return self._answer(conversation, turn)


def test_technical_losses_open_another_wave_and_are_not_trained_on(
    mini: World, tmp_path: Path
) -> None:
    engine = AbortingEngine(lambda group: group < 4)
    training_run(mini, tmp_path, engine=engine).run()
    found = documents(tmp_path)
    first = [line for line in found["groups.jsonl"] if line["step"] == 1]
    assert [line["group_index"] for line in first] == list(range(12)), "two waves"
    assert [line["reason"] for line in first[:4]] == ["shopsim_unscored_technical_group"] * 4
    assert first[0]["rewards"][0] is None and first[0]["scored"] == [False, True, True, True]
    assert {line["classification"] for line in first[:4]} == {"environment_or_runtime_error"}
    assert sum(line["admitted"] for line in first) == 4
    metrics = found["metrics.jsonl"][0]["metrics"]
    assert metrics["rollout/shopsim/wave_count"] == 2
    assert metrics["rollout/shopsim/technical_group_drop_count"] == 4
    assert metrics["rollout/shopsim/technical_group_drop_rate"] == 4 / 8
    assert metrics["rollout/shopsim/technical_failure/aborted_count"] == 4


def test_failed_groups_in_a_row_end_the_round_and_leave_whole_steps_to_resume_from(
    mini: World, tmp_path: Path
) -> None:
    broken = AbortingEngine(lambda group: group >= 8)
    with pytest.raises(
        IncompleteError, match=r"8 groups in a row.*TechnicalFailure @ model_step_1"
    ):
        training_run(mini, tmp_path, engine=broken).run()
    assert len(documents(tmp_path)["metrics.jsonl"]) == 1, "the whole step before is kept"
    training_run(mini, tmp_path).run()
    assert len(documents(tmp_path)["metrics.jsonl"]) == 2


class Crash(BaseException):
    """The process dies here."""


def run_until_crash(
    run: TrainingRun, monkeypatch: pytest.MonkeyPatch, write: int, when: str
) -> bool:
    """Whether the run died at its ``write``-th write, before it, in the middle or after it."""
    count = 0

    def guard(function: Any, *, torn: Any = None) -> Any:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count != write:
                return function(*args, **kwargs)
            if when == "after":
                function(*args, **kwargs)
            elif when == "torn" and torn is not None:
                torn(*args, **kwargs)
            raise Crash

        return guarded

    def tear(path: Path, rows: Any, **kwargs: Any) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        with path.open("a") as handle:
            handle.write(text[: len(text) * 2 // 3])

    with monkeypatch.context() as patch:
        patch.setattr(publish, "append_jsonl", guard(files.append_jsonl, torn=tear))
        patch.setattr(file_sink, "append_jsonl", guard(files.append_jsonl, torn=tear))
        patch.setattr(publish, "write_bytes", guard(files.write_bytes))
        patch.setattr(loop, "write_json", guard(files.write_json))
        engine = run.engine
        patch.setattr(engine, "save_state", guard(engine.save_state))
        patch.setattr(engine, "save_checkpoint", guard(engine.save_checkpoint))
        try:
            run.run()
        except Crash:
            return True
    return False


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_a_round_killed_at_any_write_resumes_to_the_same_documents(
    mini: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    training_run(mini, tmp_path / "whole").run()
    expected = documents(tmp_path / "whole")
    write = 1
    while True:
        folder = tmp_path / f"{when}-{write}"
        crashed = run_until_crash(training_run(mini, folder), monkeypatch, write, when)
        if not crashed:
            break
        training_run(mini, folder).run()
        assert documents(folder) == expected, f"killed {when} write {write}"
        write += 1
    assert write - 1 == 1 + 2 * 5 + 1  # manifest, five a step, checkpoint


def test_a_finished_round_run_again_changes_nothing(mini: World, tmp_path: Path) -> None:
    training_run(mini, tmp_path).run()
    before = documents(tmp_path)
    engine = FakeEngine()
    record = training_run(mini, tmp_path, engine=engine).run()
    assert record["last_step"] == 2
    assert engine.batches == []
    assert documents(tmp_path) == before


def test_another_round_is_not_continued_in_the_same_folder(mini: World, tmp_path: Path) -> None:
    training_run(mini, tmp_path).run()
    with pytest.raises(InputError, match=r"another round.*start"):
        training_run(mini, tmp_path, start=Counters(step=5)).run()
    with pytest.raises(InputError, match="thread count"):
        training_run(mini, tmp_path, engine=FakeEngine(threads=2)).run()
