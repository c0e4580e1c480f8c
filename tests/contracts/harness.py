"""One surface over the doubles and a real slime checkout, so that every test runs on both.

A checkout is named by ``SLIME_SRC``; what cannot be imported beside it on a CPU machine (Ray,
transformers, the router) is replaced by the few names that slime reads at import time.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.contracts import doubles, parsers
from tests.contracts.scripted_engine import Script, ScriptedEngine
from tests.contracts.shopping_scripts import tasks
from tests.contracts.toy_tokenizer import ToyTokenizer
from tests.trainer.engines_slime.launch_files import write_bank
from trainer.engines.slime import runtime as runtime_module

#: what slime's rollout code imports beside torch
CHECKOUT_NEEDS = ("httpx", "numpy", "tqdm", "PIL", "pylatexenc", "pybase64", "yaml")


class Harness:
    """slime as the hooks see it, a folder with a bank and a curriculum, and a scripted engine."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.tokenizer = ToyTokenizer()
        self.engine: ScriptedEngine | None = None
        self.address = ("127.0.0.1", 1)
        types = self.module("slime.utils.types") if kind == "checkout" else doubles
        self.Sample: Any = types.Sample

    @staticmethod
    def module(name: str) -> Any:
        """A module of slime."""
        return importlib.import_module(name)

    @property
    def state(self) -> Any:
        """slime's generation state, whatever holds it."""
        kind = self.module("slime.rollout.sglang_rollout").GenerateState
        return kind(self.args()) if self.kind == "checkout" else kind

    def play(self, script: Script) -> ScriptedEngine:
        """Serve a script to the episodes that follow."""
        self.stop()
        self.engine = ScriptedEngine(script)
        self.address = self.engine.serve()
        return self.engine

    def stop(self) -> None:
        """Stop serving."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def args(self, **changes: Any) -> Namespace:
        """slime's arguments, with the hooks' settings among them."""
        values: dict[str, Any] = {
            "hf_checkpoint": "toy",
            "sglang_server_concurrency": 512,
            "rollout_num_gpus": 1,
            "rollout_num_gpus_per_engine": 1,
            "rollout_temperature": 0.6,
            "rollout_top_p": 1.0,
            "rollout_top_k": -1,
            "rollout_max_response_len": 512,
            "rollout_max_context_len": 24576,
            "rollout_stop": None,
            "rollout_stop_token_ids": None,
            "rollout_skip_special_tokens": False,
            "rollout_seed": 42,
            "n_samples_per_prompt": 2,
            "sglang_dp_size": 1,
            "rollout_batch_size": 2,
            "over_sampling_batch_size": 2,
            "rollout_global_dataset": True,
            "dynamic_sampling_filter_path": "trainer.engines.slime.hooks.filter_group",
            "rollout_sample_filter_path": None,
            "rollout_all_samples_process_path": "trainer.engines.slime.hooks.record_groups",
            "custom_generate_function_path": "trainer.engines.slime.hooks.generate",
            "custom_rollout_log_function_path": "trainer.engines.slime.hooks.log_rollout",
            "custom_rm_path": None,
            "partial_rollout": False,
            "mask_offpolicy_in_partial_rollout": False,
            "group_rm": False,
            "reward_key": "reward",
            "rewards_normalization": True,
            "grpo_std_normalization": True,
            "advantage_estimator": "grpo",
            "context_parallel_size": 1,
            "max_tokens_per_gpu": 16384,
            "ci_test": False,
            "use_rollout_routing_replay": False,
            "shopsim_skillbank_path": str(self.folder / "bank.json"),
            "shopsim_curriculum_path": str(self.folder / "curriculum.json"),
            "shopsim_training_output_dir": str(self.folder / "training"),
            "shopsim_environment": "in_process",
            "shopsim_world_profile": "standard",
            "shopsim_episode_concurrency": 16,
        }
        host, port = self.address
        return Namespace(
            **{**values, "sglang_router_ip": host, "sglang_router_port": port, **changes}
        )

    def group(self, group_index: int = 0, size: int = 2, task_id: int | None = None) -> list[Any]:
        """The untouched Samples of a group, as slime's data source makes them."""
        task = tasks()[group_index % len(tasks())] if task_id is None else task_id
        return [
            self.Sample(
                group_index=group_index,
                index=group_index * size + place,
                prompt=str(task),
                metadata={"task_id": task, "split": "train"},
            )
            for place in range(size)
        ]

    def generate(self, samples: list[Any], args: Namespace | None = None) -> list[list[Any]]:
        """What the hooks make of a group's Samples, all siblings at once."""
        return asyncio.run(self.generate_group(samples, args or self.args()))

    async def generate_group(self, samples: list[Any], args: Namespace) -> list[list[Any]]:
        """The same inside a running loop."""
        from trainer.engines.slime.hooks import generate

        params = sampling_params(args)
        return list(await asyncio.gather(*(generate(args, sample, params) for sample in samples)))


def sampling_params(args: Namespace) -> dict[str, Any]:
    """What slime passes to a generate function."""
    return {
        "temperature": args.rollout_temperature,
        "top_p": args.rollout_top_p,
        "top_k": args.rollout_top_k,
        "max_new_tokens": args.rollout_max_response_len,
        "stop": args.rollout_stop,
        "stop_token_ids": args.rollout_stop_token_ids,
        "skip_special_tokens": args.rollout_skip_special_tokens,
        "no_stop_trim": True,
        "spaces_between_special_tokens": False,
    }


def checkout_path() -> Path:
    """The checkout under test; skips the test with the reason where there is none."""
    name = os.environ.get("SLIME_SRC")
    if not name:
        pytest.skip("no slime checkout: set SLIME_SRC to one")
    path = Path(name).resolve()
    if not (path / "slime" / "utils" / "types.py").is_file():
        pytest.skip(f"SLIME_SRC={name} is no slime checkout")
    missing = [need for need in CHECKOUT_NEEDS if importlib.util.find_spec(need) is None]
    if missing:
        pytest.skip(f"slime needs packages that are not installed: {', '.join(missing)}")
    return path


def install_checkout(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Make ``import slime`` mean the checkout, and its rollout state a toy one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "slime"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(path))
    parsers.install(monkeypatch)
    for name, attributes in _absent().items():
        if name.partition(".")[0] not in sys.modules and not _installed(name):
            module = ModuleType(name)
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, name, module)
    rollout = importlib.import_module("slime.rollout.sglang_rollout")
    monkeypatch.setattr(rollout, "load_tokenizer", lambda *a, **k: ToyTokenizer())
    monkeypatch.setattr(rollout, "load_processor", lambda *a, **k: None)
    if hasattr(rollout, "get_rollout_num_engines"):
        monkeypatch.setattr(rollout, "get_rollout_num_engines", lambda args: 1)
    importlib.import_module("slime.utils.misc").SingletonMeta._instances.clear()


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def _absent() -> dict[str, dict[str, Any]]:
    def class_of(name: str) -> type:
        return type(name, (), {})

    names = ("AutoTokenizer", "AutoProcessor", "PreTrainedTokenizerBase", "ProcessorMixin")
    services = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    return {
        "ray": {"_private": SimpleNamespace(services=services)},
        "transformers": {name: class_of(name) for name in names},
        "sglang_router": {"__version__": "0.3.2"},
    }


@contextmanager
def harness_of(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """A fresh harness; everything of it is gone afterwards."""
    if kind == "checkout":
        install_checkout(monkeypatch, checkout_path())
    else:
        doubles.install(monkeypatch)
        parsers.install(monkeypatch)
    write_bank(folder)
    runtime_module.reset()
    harness = Harness(kind, folder)
    try:
        yield harness
    finally:
        harness.stop()
        runtime_module.reset()


Maker = Callable[..., Harness]
