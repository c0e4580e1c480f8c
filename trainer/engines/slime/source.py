"""What a slime checkout can do, read from its text: no import, so it works without a GPU stack.

slime moves: fields and flags come and go between commits. The hooks ask for what they need here
instead of comparing version numbers. Specification: training.md §8.1.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FLAG = re.compile(r"""["'](--[a-z0-9][a-z0-9-]*)["']""")
#: flags whose parsers lie outside slime: Megatron's, the engines' and the router's
MEGATRON_FLAGS = frozenset(
    (
        *("--load", "--save", "--save-interval", "--global-batch-size", "--optimizer", "--lr"),
        *("--lr-decay-style", "--override-opt-param-scheduler", "--weight-decay"),
        *("--adam-beta1", "--adam-beta2", "--tensor-model-parallel-size", "--sequence-parallel"),
        *("--recompute-granularity", "--recompute-method", "--recompute-num-layers"),
        *("--attention-dropout", "--hidden-dropout", "--accumulate-allreduce-grads-in-fp32"),
        *("--attention-softmax-in-fp32", "--attention-backend"),
    )
)
FOREIGN_PREFIXES = ("--sglang-", "--router-")


@dataclass(frozen=True, slots=True)
class SlimeSource:
    """The features of one checkout that decide how the hooks behave."""

    path: Path
    version: str | None
    commit: str | None
    has_rollout_id: bool
    has_keep_when_insufficient: bool
    has_fork_threshold: bool
    loads_hf_weights: bool
    flags: frozenset[str]

    def identity(self) -> dict[str, object]:
        """What a plan and a test note record of the checkout."""
        return {
            "version": self.version,
            "commit": self.commit,
            "rollout_id": self.has_rollout_id,
            "keep_when_insufficient": self.has_keep_when_insufficient,
            "fork_threshold_tokens": self.has_fork_threshold,
            "hf_weight_loading": self.loads_hf_weights,
        }


def read_source(path: Path) -> SlimeSource:
    """Read a checkout; missing files read as missing features."""
    package = path / "slime"
    version = re.search(r'version="([^"]+)"', _text(path / "setup.py"))
    arguments = _text(package / "utils" / "arguments.py")
    return SlimeSource(
        path=path,
        version=version[1] if version else None,
        commit=_commit(path),
        has_rollout_id="rollout_id: int | None" in _text(package / "utils" / "types.py"),
        has_keep_when_insufficient="keep_when_insufficient"
        in _text(package / "rollout" / "filter_hub" / "base_types.py"),
        has_fork_threshold="fork_threshold_tokens" in _text(package / "agent" / "trajectory.py"),
        loads_hf_weights="supports_hf_weight_loading" in arguments,
        flags=frozenset(_FLAG.findall(arguments)),
    )


def unknown_flags(source: SlimeSource, argv: Iterable[str], model_args: Iterable[str]) -> list[str]:
    """Flags of a command line that this checkout does not know.

    Megatron's own flags and those of the engines are taken on trust: their parsers are elsewhere.
    """
    trusted = source.flags | MEGATRON_FLAGS | set(model_args)
    return sorted(
        {
            text
            for text in argv
            if text.startswith("--")
            and text not in trusted
            and not text.startswith(FOREIGN_PREFIXES)
        }
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _commit(path: Path) -> str | None:
    """The commit of a checkout; an exported tree may name it in a file ``COMMIT``."""
    named = path / "COMMIT"
    if named.is_file():
        return named.read_text(encoding="utf-8").strip()
    if not (path / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(path), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
