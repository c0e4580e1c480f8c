from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
import pytest

from trainer.cli import compare as command
from trainer.compare.bootstrap import RandrangeStream, published_interval
from trainer.compare.outcomes import arms_of_file
from trainer.compare.report import compare
from trainer.files import read_json

INTERVALS = [
    ("base_free", "iter80_free", "r_success", "0.325", "0.275", "0.375"),
    ("base_free", "iter80_free", "reward", "0.3078928571", "0.2597261161", "0.3575598958"),
    ("base_free", "base_s0", "r_success", "0.0275", "-0.015", "0.0725"),
    ("base_free", "base_s0", "reward", "0.0241345899", "-0.0178220073", "0.0664590526"),
    ("iter80_free", "iter80_st", "r_success", "0.02", "-0.005", "0.0475"),
    ("iter80_free", "iter80_st", "reward", "0.0170833333", "-0.0091666667", "0.04375"),
]
REFERENCE = {
    ("base_free", "iter80_free"): (139, 9, 4.386e-31, 2.333e-31, 0.2733, 0.3744, 0.0694, 0.0721),
    ("base_free", "base_s0"): (46, 35, 0.266412, 0.224245, -0.0167, 0.0715, 0.0603, 0.0630),
    ("iter80_free", "iter80_st"): (19, 11, 0.200488, 0.149613, -0.0076, 0.0482, 0.0381, 0.0383),
}


def outcomes_file(published: Path) -> Path:
    return published / "artifacts" / "analysis" / "test_task_outcomes.json"


@pytest.mark.parametrize("row", INTERVALS, ids=" ".join)
def test_published_intervals_come_out_digit_for_digit(
    published: Path, row: tuple[str, str, str, str, str, str]
) -> None:
    a, b, metric, difference, low, high = row
    first, second = arms_of_file(outcomes_file(published), [a, b])
    differences = second.values[metric] - first.values[metric]
    ends = published_interval(differences, metric)
    for value, printed in zip((differences.mean(), *ends), (difference, low, high), strict=True):
        digits = len(printed.partition(".")[2])
        assert f"{value:.{digits}f}" == f"{float(printed):.{digits}f}"


@pytest.mark.parametrize("folder", ["base-s0", "iter80-st"])
def test_published_comparisons_come_out_to_the_last_bit(published: Path, folder: str) -> None:
    stored = read_json(
        published / "artifacts" / "eval" / f"qwen35-4b-test-{folder}" / "comparison.json"
    )["paired"]["metrics"]
    arms = ["base_free", "base_s0"] if folder == "base-s0" else ["iter80_free", "iter80_st"]
    made = compare(*arms_of_file(outcomes_file(published), arms))["metrics"]
    for metric in ("reward", "r_success"):
        assert made[metric]["interval"] == stored[metric]["confidence_interval"]
        assert made[metric]["difference"] == stored[metric]["mean_difference"]
        assert made[metric]["a_mean"] == stored[metric]["bare_mean"]
        assert made[metric]["b_mean"] == stored[metric]["equipped_mean"]


@pytest.mark.parametrize("arms", REFERENCE)
def test_paired_tests_equal_the_reference_values(published: Path, arms: tuple[str, str]) -> None:
    gain, loss, exact, mid, low, high, mde_reward, mde_success = REFERENCE[arms]
    made = compare(*arms_of_file(outcomes_file(published), arms))
    assert made["transitions"]["failure_to_success"] == gain
    assert made["transitions"]["success_to_failure"] == loss
    assert made["tests"]["mcnemar"]["exact"] == pytest.approx(exact, rel=2e-4)
    assert made["tests"]["mcnemar"]["mid_p"] == pytest.approx(mid, rel=2e-4)
    assert made["tests"]["newcombe_interval"] == pytest.approx([low, high], abs=5e-5)
    detectable = [made["metrics"][m]["detectable_difference"] for m in ("reward", "r_success")]
    assert detectable == pytest.approx([mde_reward, mde_success], abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 400, 512, 1000])
def test_the_fast_stream_is_pythons_own(n: int) -> None:
    seed = 20260901 * n
    generator = random.Random(seed)
    expected = [generator.randrange(n) for _ in range(3000)]
    stream = RandrangeStream(seed, n)
    drawn = [*stream.take(1000), *stream.take(1), *stream.take(1999)]
    assert drawn == expected


def test_a_constant_shift_has_a_degenerate_interval() -> None:
    assert published_interval(np.full(50, 0.25), "reward") == (0.25, 0.25)


def test_the_command_prints_the_published_keys(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    args = parser.parse_args(
        f"compare --outcomes {outcomes_file(published)} --a base_free --b base_s0 --json".split()
    )
    assert args.func(args) == 0
    document = json.loads(capsys.readouterr().out)
    row = document["metrics"]["reward"]
    assert row["interval"] == [-0.017822007275132272, 0.06645905257936507]
    assert {"a_mean", "b_mean", "difference"} <= set(row)
    assert {"transitions", "tests"} <= set(document)
