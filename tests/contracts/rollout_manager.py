"""slime's rollout manager module on a CPU machine, without Ray and without an engine."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``slime.ray.rollout`` importable."""
    ray = ModuleType("ray")
    ray.remote = lambda target: target  # type: ignore[attr-defined]
    ray.put = lambda value: value  # type: ignore[attr-defined]
    services = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    ray._private = SimpleNamespace(services=services)  # type: ignore[attr-defined]
    ray.util = SimpleNamespace()  # type: ignore[attr-defined]
    strategies = ModuleType("ray.util.scheduling_strategies")
    strategies.PlacementGroupSchedulingStrategy = object  # type: ignore[attr-defined]
    constants = ModuleType("sglang.srt.constants")
    for name in ("CUDA_GRAPH", "KV_CACHE", "WEIGHTS"):
        setattr(constants, f"GPU_MEMORY_TYPE_{name}", name.lower())
    engine = ModuleType("slime.backends.sglang_utils.sglang_engine")
    engine.SGLangEngine = object  # type: ignore[attr-defined]
    modules = {
        "ray": ray,
        "ray.util": ModuleType("ray.util"),
        "ray.util.scheduling_strategies": strategies,
        "sglang.srt.constants": constants,
        "slime.backends.sglang_utils.sglang_engine": engine,
    }
    if "sglang" not in sys.modules:
        modules |= {"sglang": ModuleType("sglang"), "sglang.srt": ModuleType("sglang.srt")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def rollout_module() -> Any:
    """The module, imported anew; raises ImportError where something is still missing."""
    return importlib.import_module("slime.ray.rollout")
