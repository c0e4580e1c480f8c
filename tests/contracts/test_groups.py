"""Groups: one treatment for all siblings, who leads, the retry, the label, what stays in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from trainer.engines.slime.groups import GroupTable, OpenGroup
from trainer.engines.slime.runtime import runtime
from trainer.files import read_json
from trainer.skills.curriculum import load_curriculum
from trainer.skills.masks import treatment


def outcome(plan):
    """A script: ``plan[place]`` says whether a sibling wins, ``plan["retry"]`` the retry."""
    size = sum(key != "retry" for key in plan)

    def choose(group, sample, retry):
        won = plan["retry"] if retry else plan[sample % size]
        task = tasks()[group % len(tasks())]
        return winning(task) if won else losing(task)

    return by_session(choose)


def triage_of(slime, group_index=0):
    return read_json(
        slime.folder / "training" / "round-000" / f"group-{group_index:09d}" / "triage.json"
    )


def label(rows):
    return [row.metadata.get("shopsim_group_triage") for row in rows]


def test_all_siblings_of_a_group_see_what_was_drawn_for_it(slime):
    engine = slime.play(outcome({0: True, 1: True, 2: True, 3: True}))
    curriculum = load_curriculum(slime.folder / "curriculum.json")
    for index in range(6):
        rollouts = slime.generate(slime.group(index, size=4), slime.args(n_samples_per_prompt=4))
        given = treatment(curriculum, index)
        for rows in rollouts:
            assignment = rows[0].metadata["shopsim_assignment"]
            assert assignment == {
                "state_id": curriculum.state_id,
                "group_key": str(index),
                "mode": given.mode,
                "skill_ids": list(given.skill_ids),
            }
        prompts = [
            slime.tokenizer.decode(r["input_ids"])
            for r in engine.requests
            if f"-{index}-" in r["session"]
        ]
        for chunk in curriculum.chunks:
            shown = [f'<skill id="{chunk.skill_id}"' in prompt for prompt in prompts]
            assert set(shown) == {chunk.skill_id in given.skill_ids}


def test_only_the_last_sibling_carries_the_label(slime):
    slime.play(outcome({0: True, 1: False}))
    rollouts = slime.generate(slime.group(0))
    leaders = [rows for rows in rollouts if all(label(rows))]
    assert len(leaders) == 1
    others = [rows for rows in rollouts if rows is not leaders[0]]
    assert not any(label(others[0]))
    assert label(leaders[0])[0] == {
        "all_wrong": False,
        "classification": "not_frontier",
        "full_skill_retry": False,
        "full_skill_retry_scored": None,
        "full_skill_retry_success": None,
    }


@pytest.mark.parametrize(
    ("retry_wins", "classification"),
    [(True, "model_internalization_deficit"), (False, "full_skill_failure_pending_analysis")],
)
def test_an_all_wrong_group_is_retried_with_every_chunk_outside_of_training(
    slime, retry_wins, classification
):
    engine = slime.play(outcome({0: False, 1: False, "retry": retry_wins}))
    rollouts = slime.generate(slime.group(0))
    sessions = {request["session"] for request in engine.requests}
    assert len(sessions) == 3
    assert sum(session.endswith("-2-retry") for session in sessions) == 1
    trained = {row.rollout_id for rows in rollouts for row in rows}
    assert trained == {0, 1}
    triage = triage_of(slime)
    assert triage["schema_version"] == "shopsimrl-training-failure-triage-v1"
    assert triage["all_wrong"] is True
    assert triage["classification"] == classification
    assert [entry["sample_index"] for entry in triage["training_rollouts"]] == [0, 1]
    retry = read_json(Path(triage["full_skill_retry"]["trace_path"]))
    assert retry["episode_id"] == triage["full_skill_retry"]["episode_id"]
    assert retry["provenance"]["skills"]["diagnostic_full_skill"] is True
    assert retry["provenance"]["skills"]["assignment"]["mode"] == "diagnostic_full_skill"
    assert [chunk["skill_id"] for chunk in retry["selected_skills"]] == ["chunk-a", "chunk-b"]
    assert retry["job"]["split"] == "train"
    summary = next(s for rows in rollouts for s in label(rows) if s)
    assert summary["full_skill_retry"] is True
    assert summary["full_skill_retry_success"] is retry_wins


def test_without_retries_an_all_wrong_group_says_so(slime):
    engine = slime.play(outcome({0: False, 1: False}))
    slime.generate(slime.group(0), slime.args(shopsim_full_skill_retry=False))
    assert triage_of(slime)["classification"] == "all_wrong_retry_disabled"
    assert triage_of(slime)["full_skill_retry"] is None
    assert len({request["session"] for request in engine.requests}) == 2


def test_a_technical_failure_is_neither_retried_nor_called_a_failure_of_the_policy(slime):
    def script(session, turn):
        return {"status": 500} if session.endswith("-0-1") else losing(tasks()[0])[turn - 1]

    engine = slime.play(script)
    slime.generate(slime.group(0))
    assert triage_of(slime)["classification"] == "environment_or_runtime_error"
    assert not any(r["session"].endswith("retry") for r in engine.requests)


def test_a_retry_that_breaks_is_a_technical_failure(slime):
    def script(session, turn):
        return {"status": 500} if session.endswith("retry") else losing(tasks()[0])[turn - 1]

    slime.play(script)
    slime.generate(slime.group(0))
    triage = triage_of(slime)
    assert triage["classification"] == "environment_or_runtime_error"
    assert triage["full_skill_retry"]["scored"] is False


def test_a_group_that_slime_cut_off_has_a_label_of_its_own(slime):
    def script(session, turn):
        if session.endswith("-0-1"):
            return {"text": "x", "finish": "abort"}
        return losing(tasks()[0])[turn - 1]

    engine = slime.play(script)
    slime.generate(slime.group(0))
    assert triage_of(slime)["classification"] == "aborted"
    assert not any(r["session"].endswith("retry") for r in engine.requests)


def test_a_retry_that_slime_cut_off_is_no_verdict(slime):
    def script(session, turn):
        if session.endswith("retry"):
            return {"text": "x", "finish": "abort"}
        return losing(tasks()[0])[turn - 1]

    slime.play(script)
    slime.generate(slime.group(0))
    assert triage_of(slime)["classification"] == "retry_aborted"


def test_after_slime_asked_to_stop_no_turn_and_no_retry_is_begun(slime):
    state = slime.state
    engine = slime.play(lambda session, turn: "x")
    state.aborted = True
    try:
        rows = slime.generate(slime.group(0))[0]
    finally:
        state.aborted = False
    assert engine.requests == []
    assert rows[0].metadata["shopsim_failure"] == "aborted"
    assert read_json(Path(rows[0].metadata["shopsim_trace_path"]))["status"] == "failed"


def test_an_episode_between_two_turns_stops_when_slime_asks_to(slime):
    state = slime.state

    def script(session, turn):
        state.aborted = True
        return winning(tasks()[0])[turn - 1]

    engine = slime.play(script)
    try:
        rows = slime.generate(slime.group(0))[0]
    finally:
        state.aborted = False
    assert max(engine.turns.values()) == 1
    assert rows[0].metadata["shopsim_failure"] == "aborted"


def test_a_curriculum_replaced_in_the_middle_of_a_group_changes_nothing_for_it(slime):
    from tests.contracts.harness import sampling_params
    from trainer.engines.slime.hooks import generate

    slime.play(outcome({0: True, 1: True}))
    args = slime.args()
    first, second = slime.group(0)
    path = slime.folder / "curriculum.json"
    frozen = path.read_text()

    async def both():
        early = await generate(args, first, sampling_params(args))
        path.write_text("{}")
        late = await generate(args, second, sampling_params(args))
        return early, late

    early, late = asyncio.run(both())
    path.write_text(frozen)
    assert early[0].metadata["shopsim_assignment"] == late[0].metadata["shopsim_assignment"]


def test_siblings_that_disagree_about_their_group_are_refused(tmp_path, double):
    table = runtime().groups
    path = double.folder / "curriculum.json"
    table.join(path, 0, task_id=1, size=8)
    with pytest.raises(RuntimeError, match="siblings disagree"):
        table.join(path, 0, task_id=1, size=4)
    with pytest.raises(RuntimeError, match="siblings disagree"):
        table.join(path, 0, task_id=2, size=8)


def rollout_with(assignment):
    from types import SimpleNamespace

    request = SimpleNamespace(skills={"assignment": assignment})
    return SimpleNamespace(result=SimpleNamespace(request=request))


def test_a_sibling_with_other_chunks_or_another_order_is_refused(double):
    curriculum = load_curriculum(double.folder / "curriculum.json")
    index = next(i for i in range(50) if len(treatment(curriculum, i).skill_ids) == 2)
    entry = OpenGroup(index, 0, 2, curriculum, treatment(curriculum, index))
    right = entry.treatment.to_record(curriculum, index)
    swapped = {**right, "skill_ids": list(reversed(right["skill_ids"]))}
    other_state = {**right, "state_id": "0" * 64}
    for wrong in (swapped, other_state):
        with pytest.raises(RuntimeError, match="was treated as"):
            entry.report(0, rollout_with(wrong))
    assert entry.report(0, rollout_with(right)) is False
    with pytest.raises(RuntimeError, match="came twice"):
        entry.report(0, rollout_with(right))
    assert entry.report(1, rollout_with(right)) is True


def test_nothing_of_a_cut_off_group_stays_once_the_step_ends(slime):
    slime.play(outcome({0: True, 1: True}))
    args = slime.args()
    asyncio.run(slime.generate_group(slime.group(0), args))
    asyncio.run(slime.generate_group(slime.group(1)[:1], args))
    table: GroupTable = runtime().groups
    assert set(table.open_groups) == {1}
    assert set(table.finished) == {0}
    finished, cut_off, started = table.clear()
    assert (set(finished), set(cut_off), started) == ({0}, {1}, 2)
    assert not table.open_groups and not table.finished


def test_a_group_played_again_after_a_crash_leaves_no_stale_retry(slime):
    slime.play(outcome({0: False, 1: False, "retry": False}))
    slime.generate(slime.group(0))
    folder = slime.folder / "training" / "round-000" / "group-000000000"
    assert (folder / "full-skill-retry.json").exists()
    from trainer.engines.slime import runtime as module

    module.reset()
    slime.play(outcome({0: True, 1: False}))
    slime.generate(slime.group(0))
    assert not (folder / "full-skill-retry.json").exists()
    assert triage_of(slime)["full_skill_retry"] is None
