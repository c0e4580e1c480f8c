"""Our hooks in the form slime's own plugin-contract tests plug in.

Those tests call a hook with almost empty arguments and look for marks that their reference hooks
leave. Each function here only fills in arguments, calls our hook, and leaves the mark.
"""

from __future__ import annotations

import copy
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from tests.contracts import harness as harness_module
from tests.contracts import parsers
from tests.contracts.harness import Harness
from tests.contracts.shopping_scripts import by_session, tasks, winning
from tests.contracts.toy_tokenizer import ToyTokenizer
from tests.trainer.engines_slime.launch_files import write_bank
from trainer.engines.slime import hooks

FOLDER = Path(tempfile.mkdtemp(prefix="plugged-"))
write_bank(FOLDER)
parsers.install(pytest.MonkeyPatch())


def whole_args(args: Any) -> Namespace:
    """A launch's arguments with those of the test laid over them."""
    harness = Harness("checkout", FOLDER)
    given = {name: getattr(args, name) for name in dir(args) if not name.startswith("_")}
    return Namespace(**{**vars(harness.args()), **given})


async def generate(args: Any, sample: Any, sampling_params: dict[str, Any]) -> Any:
    """One episode of a group of one, as its single contiguous Sample."""
    from slime.rollout import sglang_rollout

    sglang_rollout.GenerateState.tokenizer = ToyTokenizer()
    harness = Harness("checkout", FOLDER)
    harness.play(by_session(lambda group, place, retry: winning(tasks()[0])))
    whole = Namespace(
        **{
            **vars(whole_args(args)),
            **dict(zip(("sglang_router_ip", "sglang_router_port"), harness.address, strict=True)),
            "n_samples_per_prompt": 1,
            "shopsim_sample_layout": "episode",
        }
    )
    asked = copy.copy(sample)
    asked.group_index, asked.metadata = 0, {"task_id": tasks()[0], "split": "train"}
    try:
        rows = await hooks.generate(whole, asked, harness_module.sampling_params(whole))
    finally:
        harness.stop()
    assert len(rows) == 1
    assert rows[0].reward["r_success"] == 1.0
    return rows[0]


def filter_group(args: Any, samples: list[Any]) -> Any:
    """The filter over episodes whose rewards are plain numbers there."""
    for sample in samples:
        value = float(sample.reward or 0.0)
        sample.metadata = {"shopsim_scored": True}
        sample.reward = {"reward": value, "r_strict": value, "r_success": value}
    return hooks.filter_group(whole_args(args), samples)


def record_groups(args: Any, all_groups: list[Any], data_source: Any) -> None:
    """The recorder; the test looks for a count."""
    hooks.record_groups(args, all_groups, data_source)
    args.processed_group_count = len(all_groups)


def log_rollout(
    rollout_id: int, args: Any, samples: list[Any], rollout_extra_metrics: Any, rollout_time: float
) -> bool:
    """The log function; the test looks for the step's id."""
    args.logged_rollout_id = rollout_id
    whole = whole_args(args)
    for sample in samples:
        sample.group_index = 0
        sample.loss_mask = sample.loss_mask or []
    return hooks.log_rollout(rollout_id, whole, samples, rollout_extra_metrics, rollout_time)


def normalise_rewards(args: Any, samples: list[Any]) -> tuple[list[float], list[float]]:
    """The advantages of rows whose rewards are plain numbers there."""
    args.reward_key = None
    return hooks.normalise_rewards(args, samples)
