"""Stand-ins for the few things the hooks take from slime, so that their tests always run.

Only what is used: ``Sample`` with its status and cache information, ``DynamicFilterOutput``, and
``GenerateState``. The contract tests run the same behaviour against a real checkout.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from tests.contracts.toy_tokenizer import ToyTokenizer


@dataclass
class Sample:
    """The fields of slime's ``Sample`` that the hooks touch."""

    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: Any = ""
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: Any = None
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    remove_sample: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    session_id: str | None = None

    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"

    status: Status = Status.PENDING

    @dataclass
    class PrefixCacheInfo:
        cached_tokens: int = 0
        total_prompt_tokens: int = 0

        def add(self, meta_info: dict[str, Any]) -> None:
            self.cached_tokens += meta_info.get("cached_tokens", 0)
            self.total_prompt_tokens += meta_info.get("prompt_tokens", 0)

    prefix_cache_info: PrefixCacheInfo = field(default_factory=PrefixCacheInfo)

    def get_reward_value(self, args: Any) -> Any:
        return self.reward if not args.reward_key else self.reward[args.reward_key]


@dataclass
class DynamicFilterOutput:
    """A filter's verdict."""

    keep: bool
    reason: str | None = None
    keep_when_insufficient: bool = False


class GenerateState:
    """slime's singleton; a test sets ``aborted`` and ``remaining_batch_size``."""

    aborted = False
    remaining_batch_size = 0

    def __init__(self, args: Any) -> None:
        self.args = args
        self.tokenizer = ToyTokenizer()


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the doubles where the hooks look for slime."""
    monkeypatch.setattr(GenerateState, "aborted", False)
    monkeypatch.setattr(GenerateState, "remaining_batch_size", 0)
    for name in [name for name in sys.modules if name.partition(".")[0] == "slime"]:
        monkeypatch.delitem(sys.modules, name)
    contents: dict[str, dict[str, Any]] = {
        "slime": {"__path__": []},
        "slime.rollout": {"__path__": []},
        "slime.rollout.sglang_rollout": {"GenerateState": GenerateState},
        "slime.rollout.filter_hub": {"__path__": []},
        "slime.rollout.filter_hub.base_types": {"DynamicFilterOutput": DynamicFilterOutput},
    }
    for name, attributes in contents.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
