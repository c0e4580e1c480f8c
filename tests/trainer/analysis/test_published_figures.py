"""Every published figure that the saved artefacts can give, exact (published-figures.md)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trainer.analysis import Analysis, read_run
from trainer.analysis.schema_outcomes import Contrast
from trainer.errors import InputError
from trainer.files import write_json

ARMS = {
    "base_free": (0.5421666666666667, 0.02433258, 0.5175, 6.2125, 2485, 57, 19, 224, 2409, 712_183,
                  18_053_628),
    "base_s0": (0.5663012566137566, 0.02421896, 0.545, 6.6125, 2645, 99, 10, 260, 2536, 776_975,
                25_464_782),
    "final_free": (0.8500595238095238, 0.01768009, 0.8425, 5.7525, 2301, 144, 13, 17, 2144, 440_529,
                   13_904_498),
    "final_st": (0.8671428571428571, 0.01687712, 0.8625, 6.01, 2404, 276, 17, 23, 2111, 499_643,
                 20_115_784),
}  # fmt: skip
ARM_KEYS = ("reward", "reward_sem", "success", "steps_mean", "model_steps", "protocol_errors",
            "policy_failures", "invalid_actions", "total_actions", "completion_tokens",
            "prompt_tokens")  # fmt: skip
COMPONENTS = {
    "base_free": (0.7451428571, 0.7282689394, 0.5825, 0.8600, 0.91875),
    "base_s0": (0.7695773810, 0.7532617452, 0.6275, 0.8675, 0.93375),
    "final_free": (0.9309255952, 0.9186339286, 0.8975, 0.8875, 0.9475),
    "final_st": (0.9236964286, 0.9141994048, 0.9025, 0.8900, 0.92875),
}
CONTRASTS = {
    "training_free": (0.325, (0.275, 0.375), 0.3078928571, (0.2597261161, 0.3575598958),
                      (139, 9, 198, 54), 4.386e-31, 2.333e-31, (0.2733, 0.3744), 0.0694, 0.0721),
    "initial_skill": (0.0275, (-0.015, 0.0725), 0.0241345899, (-0.0178220073, 0.0664590526),
                      (46, 35, 172, 147), 0.266412, 0.224245, (-0.0167, 0.0715), 0.0603, 0.0630),
    "final_skill": (0.02, (-0.005, 0.0475), 0.0170833333, (-0.0091666667, 0.04375),
                    (19, 11, 326, 44), 0.200488, 0.149613, (-0.0076, 0.0482), 0.0381, 0.0383),
}  # fmt: skip
STATES = (
    "49ac001d2e041be7a0dd717e4473b6a98529edef55f4d69bc06ce120307ce5a3",
    "747223fbeca202a01a735b99fc578cc12b45a00709948e49b5dc841755fc4236",
    "36b65614390862ece495d46d23626f7bf2d8e1ae74c806dace646309d587f816",
    "1f318d07f5b0e16d5a9cdf593889ee88f6bfd2c14ec3ca36eae5992282b6f792",
)
# bare and masked reward, delta, bare and masked success, columns, condition number of the design
GATES = (
    (0.765952380952381, 0.7916607142857143, 0.0257083333, 0.7475, 0.775, 16, 6.25,
     "70bdd0d81a0ca873be3639f3afffebce615da781ca206f196523977955bbf71d",
     "38db2dc584c66e9afe7ce81efd00acb5e298589da98da995526058d705b380cf",
     (5.3175, 2127, 84, 46, 2034, 509_802)),
    (0.8131190476190475, 0.8406904761904762, 0.0275714286, 0.80, 0.8275, 13, 4.53,
     "bdd89685e3b8dc32ce83053f06ced513f911fb92212d800ac0291cea758a7c16",
     "92deab21316a1384f66d8c7cd39fac9c723e7f7706913729b8a3e4cef7fdf1a8",
     (5.99, 2396, 51, 103, 2327, 543_378)),
    (0.8601190476190476, 0.8797738095238096, 0.0196547619, 0.8475, 0.87, 11, 5.01,
     "b3e740e122374803eb7209002f0f268f89ae6a5b0f5099de01b826de11f7628f",
     "e85e947b1f6b6aae434da8f4a04405d41b6ee73cb91627afe7bd4e77213f811a",
     (5.8075, 2323, 102, 87, 2219, 436_773)),
)  # fmt: skip
UPDATE_MEANS = {
    0: (0.00012806800659745932, 2.183156442757793, 0.00030597948043578074, 0.18024728074669838,
        0.010232505667954684, 0.0012273532236577011),
    1: (0.00016920817724894733, 2.159832875314827, 0.00022542584652001095, 0.15556651838123797,
        0.01015056623145938, 0.0005807911365991458),
    2: (0.00003897383867297321, 1.3825304746757585, 0.0002584903730166843, 0.14212007634341717,
        0.009577121981419624, 0.0005634558736346662),
    3: (0.00004174423665972427, 1.1375237217546175, 0.00025977378427344, 0.13257721327245237,
        0.009719705046154558, 0.000380078298621811),
}  # fmt: skip
UPDATE_KEYS = ("train/loss", "train/grad_norm", "train/ppo_kl", "train/entropy_loss",
               "train/train_rollout_logprob_abs_diff", "train/pg_clipfrac")  # fmt: skip
FUNNEL = {
    "generated_groups": (640, 640, 640, 640),
    "generated_episodes": (5120, 5120, 5120, 5120),
    "trainer_episodes": (2560, 2560, 2560, 2560),
    "all_wrong_groups": (104, 57, 54, 39),
    "analysed_cards": (87, 56, 53, 39),
    "eligible_cards": (61, 22, 20, 11),
    "candidates": (6, 6, 6, 4),
    "candidates_add": (5, 1, 4, 2),
    "candidates_rewrite": (1, 5, 2, 2),
}


@pytest.fixture(scope="module")
def found(published: Path) -> Analysis:
    return read_run(published, "published")


def contrast(found: Analysis, name: str) -> Contrast:
    return next(c for c in found.tests[0].contrasts if c.name == name)


@pytest.mark.parametrize("condition", ARMS)
def test_the_four_conditions_have_the_published_figures(found: Analysis, condition: str) -> None:
    arm = next(a for a in found.tests[0].arms if a.condition == condition)
    assert [arm.figures[k].value for k in ARM_KEYS] == pytest.approx(ARMS[condition], abs=5e-9)
    parts = [arm.figures[k].value for k in ("r_att", "r_loose", "r_option", "r_price", "r_type")]
    assert parts == pytest.approx(COMPONENTS[condition], abs=1e-10)
    assert arm.figures["coverage"].value == 1.0
    assert arm.figures["reward"].n == 400
    assert arm.figures["invalid_action_rate"].n == ARMS[condition][8]


def test_tokens_a_step_are_pooled_over_the_model_steps(found: Analysis) -> None:
    arms = {a.condition: a.figures["tokens_per_step"] for a in found.tests[0].arms}
    assert arms["final_free"].value == pytest.approx(440_529 / 2_301, abs=0)
    assert arms["final_st"].value == pytest.approx(499_643 / 2_404, abs=0)
    assert arms["final_st"].n == 2_404


@pytest.mark.parametrize("name", CONTRASTS)
def test_paired_differences_are_the_published_ones(found: Analysis, name: str) -> None:
    success, ends, reward, reward_ends, moved, exact, mid, newcombe, mde, mde_success = CONTRASTS[
        name
    ]
    made = contrast(found, name)
    by_metric = {d.metric: d for d in made.differences}
    assert by_metric["r_success"].difference == pytest.approx(success, abs=1e-12)
    assert by_metric["r_success"].interval == pytest.approx(ends, abs=1e-12)
    assert by_metric["reward"].difference == pytest.approx(reward, abs=1e-10)
    assert by_metric["reward"].interval == pytest.approx(reward_ends, abs=1e-10)
    assert made.transitions is not None
    assert tuple(made.transitions.values()) == moved
    assert made.mcnemar_exact == pytest.approx(exact, rel=1e-3)
    assert made.mcnemar_mid_p == pytest.approx(mid, rel=1e-3)
    assert made.newcombe == pytest.approx(newcombe, abs=1e-4)
    assert by_metric["reward"].detectable == pytest.approx(mde, abs=1e-4)
    assert by_metric["r_success"].detectable == pytest.approx(mde_success, abs=1e-4)


def test_the_gap_that_the_text_leaves_to_the_weights(found: Analysis) -> None:
    test = found.tests[0]
    assert test.initial_gap is not None
    assert test.internalisation_gap is not None
    assert test.initial_gap.difference == pytest.approx(0.0275, abs=1e-12)
    assert test.internalisation_gap.difference == pytest.approx(0.02, abs=1e-12)


def test_comparisons_on_record_are_quoted(found: Analysis) -> None:
    by_name = {c.name: {d.metric: d for d in c.differences} for c in found.recorded}
    s0 = by_name["qwen35-4b-test-base-s0"]
    assert s0["completion_tokens"].difference == pytest.approx(161.98, abs=1e-9)
    assert s0["completion_tokens"].interval == pytest.approx((-26.45, 347.01), abs=5e-3)
    assert s0["r_option"].interval == pytest.approx((0.0029, 0.0875), abs=5e-5)
    assert s0["policy_failure_rate"].difference == pytest.approx(-0.0069, abs=5e-5)
    st = by_name["qwen35-4b-test-iter80-st"]
    assert st["protocol_error_rate"].interval == pytest.approx((0.0076, 0.0244), abs=5e-5)
    assert st["duration_ms"].difference == pytest.approx(5_419, abs=0.5)
    assert st["steps"].interval == pytest.approx((-0.2575, 0.7725), abs=1e-9)
    cross = by_name["pair_vs_s0_descriptive"]
    assert cross["r_success"].interval == pytest.approx((0.2675, 0.3675), abs=1e-12)
    assert by_name["internalization_free"]["r_success"].interval == (0.275, 0.3775)


@pytest.mark.parametrize("number", range(3))
def test_gates_have_the_published_means_and_hashes(found: Analysis, number: int) -> None:
    bare, masked, delta, bare_ok, masked_ok, columns, condition, assignment, bank, acts = GATES[
        number
    ]
    gate = found.gates[number]
    assert gate.bare["reward"].value == bare
    assert gate.masked["reward"].value == masked
    assert gate.delta.value == pytest.approx(delta, abs=1e-10)
    assert (gate.bare["r_success"].value, gate.masked["r_success"].value) == (bare_ok, masked_ok)
    assert (gate.columns, gate.n) == (columns, 400)
    assert gate.rebuilt_assignment_sha256 == gate.assignment_sha256 == assignment
    assert gate.selected_bank_sha256 == bank == found_bank(found, number + 1)
    assert gate.condition_number == pytest.approx(condition, abs=5e-3)
    keys = ("steps_mean", "model_steps", "protocol_errors", "invalid_actions", "total_actions",
            "completion_tokens")  # fmt: skip
    assert tuple(gate.behaviour[k].value for k in keys) == acts


def found_bank(found: Analysis, number: int) -> str:
    return next(bank.bank_sha256 for bank in found.banks if bank.number == number)


def test_coefficients_ranks_and_statuses_are_those_of_the_table(
    found: Analysis, published: Path
) -> None:
    rows = (published / "artifacts/analysis/chunk_contributions.csv").read_text().splitlines()[1:]
    stated = [row.split(",") for row in rows]
    made = [
        [str(c.round), c.intervention_id, c.kind, c.logical_chunk_id, c.operation, str(c.order),
         repr(c.coefficient), "" if c.rank is None else str(c.rank), c.status]
        for c in found.coefficients
    ]  # fmt: skip
    assert len(made) == 52
    assert [r[:6] + r[7:] for r in made] == [r[:6] + r[7:] for r in stated]
    assert [float(r[6]) for r in made] == [float(r[6]) for r in stated]


def test_masks_drawn_again_count_who_was_shown(found: Analysis) -> None:
    shown = [c.with_n for c in found.coefficients if c.round == 0 and c.with_n is not None]
    assert (min(shown), max(shown), len(shown)) == (131, 215, 16)
    assert all(
        c.with_n + c.without_n == c.n == 400
        for c in found.coefficients
        if c.with_n is not None and c.without_n is not None
    )


def test_curricula_have_the_published_states_also_the_one_that_was_not_published(
    found: Analysis,
) -> None:
    assert tuple(r.state_id for r in found.rounds) == STATES
    assert [r.q for r in found.rounds] == [0.2] * 4
    assert all(max(r.rho.values()) == pytest.approx(0.9, abs=1e-12) for r in found.rounds)


def test_banks_shrink_and_grow_as_published(found: Analysis) -> None:
    assert [len(bank.chunks) for bank in found.banks] == [10, 7, 5, 8, 8]
    assert [bank.complete for bank in found.banks] == [True, True, True, True, False]
    first = {chunk.skill_id: (chunk.effect, chunk.rank) for chunk in found.banks[0].chunks}
    effect, rank = first["chunk-f58e352cdad0"]
    assert rank == 1
    assert effect == pytest.approx(0.0749709, abs=5e-8)


@pytest.mark.parametrize("key", FUNNEL)
def test_the_funnel_from_failure_to_candidate(found: Analysis, key: str) -> None:
    assert tuple(r.funnel[key].value for r in found.rounds) == FUNNEL[key]


def test_evidence_only_cards_and_ledger_rows_where_their_files_are(found: Analysis) -> None:
    assert [r.funnel["evidence_only_cards"].value for r in found.rounds[:3]] == [13, 1, 5]
    assert [r.funnel["ledger_rows"].value for r in found.rounds[:3]] == [6, 12, 18]
    assert len(found.candidates) == 22


def test_refit_errors_are_those_on_record(found: Analysis) -> None:
    assert [g.stated_refit_max_error for g in found.gates] == pytest.approx(
        [1.5092e-16, 1.8735e-16, 6.5919e-17, 1.3184e-16], rel=1e-4
    )


def test_training_steps_are_complete_and_exact(found: Analysis) -> None:
    at = {name: i for i, name in enumerate(found.training.columns)}
    first = found.training.rows[0]
    assert len(found.training.rows) == 80
    assert first[at["rollout/shopsim/scored_rate"]] == 0.96484375
    assert first[at["rollout/shopsim/reward_mean"]] == 0.5843454790823213
    assert first[at["rollout/shopsim/success_rate"]] == 0.562753036437247
    total = {n: sum(r[at[f"rollout/shopsim/{n}"]] for r in found.training.rows)  # type: ignore
             for n in ("group_count", "trajectory_count")}  # fmt: skip
    assert total == {"group_count": 2_539, "trajectory_count": 20_312}
    assert not any("ebb64d6b2cfaaa2a" in name for name in at)  # empty in every published step


def test_updates_are_summarised_by_round_and_by_place_in_their_step(found: Analysis) -> None:
    by_key = {(s.round, s.part, s.metric): s for s in found.update_summaries}
    for number, means in UPDATE_MEANS.items():
        made = [by_key[number, "all", key].figures.mean for key in UPDATE_KEYS]
        assert made == pytest.approx(means, rel=1e-12, abs=2e-16)
        first, second = (by_key[number, p, "train/pg_clipfrac"] for p in ("1", "2"))
        assert (first.figures.most, first.zeros, first.figures.n) == (0.0, 20, 20)
        assert second.figures.mean == pytest.approx(2 * means[5], rel=1e-12)
        assert by_key[number, "2", "train/ppo_kl"].zeros == 0
    medians = [by_key[r, "all", "train/grad_norm"].figures.median for r in range(4)]
    assert medians == pytest.approx([1.826, 1.347, 1.402, 1.179], abs=5e-4)


def test_exact_zero_gradients_and_outliers_are_where_they_were(found: Analysis) -> None:
    at = found.updates.columns.index("train/grad_norm")
    norms = {int(row[0] or 0): row[at] for row in found.updates.rows}
    assert [n for n, v in norms.items() if v == 0] == [66, 70, 82, 116, 140, 142, 156, 160]
    largest = sorted(norms, key=lambda n: -float(norms[n] or 0))[:3]
    assert largest == [64, 28, 23]
    assert norms[64] == pytest.approx(34.752, abs=5e-4)


def test_cases_are_the_published_ones(found: Analysis) -> None:
    made = [(c.task_id, c.a.turns, c.b.turns, c.a.tokens, c.b.tokens) for c in found.cases]
    assert made == [
        (1828, 25, 4, 6174, 740),
        (3538, 30, 4, 13465, 1045),
        (4359, 4, 30, 959, 6084),
    ]


def test_the_ranking_appendix_is_quoted(found: Analysis) -> None:
    arms = {a.name: a for a in found.ranking}
    assert arms["top4"].figures["reward"].value == 0.5417341269841269
    assert arms["bottom4"].figures["success"].value == 0.55
    assert arms["random4_20260907"].figures["reward"].value == 0.5588511904761905
    rows = {c.name: {d.metric: d for d in c.differences} for c in found.ranking_contrasts}
    assert rows["top_minus_bottom"]["reward"].interval == pytest.approx(
        (-0.0695873264, 0.0113758681), abs=1e-10
    )
    assert rows["bottom4_minus_bare"]["reward"].difference == pytest.approx(0.0282272, abs=5e-8)


def test_facts_of_the_cold_start_and_the_splits(found: Analysis) -> None:
    made = {k: f.value for k, f in found.facts.items() if not k.startswith("base_gate/")}
    assert made == {
        "cold_start_trajectories": 400, "cold_start_successes": 202, "cold_start_failures": 198,
        "cold_start_cards": 602, "cold_start_draft_chunks": 16,
        "training_episodes": 20_480, "training_turns": 110_997, "evaluation_cohorts": 9,
        "train_tasks": 3_726, "val_tasks": 400, "test_tasks": 400,
        "failed_attempts_base_free": 21, "failed_attempts_base_s0": 0,
        "failed_attempts_iter80_free": 0, "failed_attempts_iter80_st": 0,
    }  # fmt: skip
    assert found.facts["failed_attempts_base_free"].n == 421
    assert sum(k.startswith("base_gate/") for k in found.facts) == 16


def test_what_is_not_in_the_folder_is_said(found: Analysis) -> None:
    assert "artifacts/round-003/gate/online_gate_manifest.json" in found.missing
    assert found.cohorts == []


def test_no_path_of_a_machine_is_in_the_document(found: Analysis) -> None:
    text = found.model_dump_json()
    assert "/root/" not in text
    assert "C:\\\\" not in text


def test_files_of_the_whole_layout_are_used_where_they_are(published: Path, tmp_path: Path) -> None:
    copied = tmp_path / "published"
    shutil.copytree(published, copied)
    analysis = copied / "artifacts/analysis"
    rows = ["round,group_index,mode,classification,all_wrong,rollouts,scored"]
    rows += [f"3,{i},assisted,{c},0,8,8" for i, c in enumerate(["not_frontier"] * 3 + ["deficit"])]
    (analysis / "training_groups.csv").write_text("\n".join(rows) + "\n")
    delta = {"n": 400, "a": 0.8694166666666666, "b": 0.8760238095238095, "ci95": [-0.0218, 0.035]}
    write_json(analysis / "analysis.json", {"rounds": [{"round": 3, "gate_delta": delta}]})
    found = read_run(copied)
    last = next(r for r in found.rounds if r.round == 3)
    assert (last.funnel["not_frontier"].value, last.funnel["deficit"].value) == (3, 1)
    assert last.funnel["deficit"].source == "artifacts/analysis/training_groups.csv"
    assert found.gates[3].delta_interval == (-0.0218, 0.035)
    assert "artifacts/analysis/analysis.json" not in found.missing


def test_a_damaged_file_is_named(published: Path, tmp_path: Path) -> None:
    copied = tmp_path / "published"
    shutil.copytree(published, copied)
    path = copied / "artifacts/round-001/analysis/candidate_pool.json"
    path.write_text(path.read_text(encoding="utf-8").replace("pool_sha256", "pool_sha255"))
    with pytest.raises(InputError, match="candidate_pool"):
        read_run(copied)


def test_a_folder_of_neither_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run folder nor a published run"):
        read_run(tmp_path)
