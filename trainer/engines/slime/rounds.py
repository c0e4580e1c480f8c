"""The configurations of a slime round: hooks, analysis, bare validation, gate; absolute paths.

Specification: training.md §6.5, with the values of the published run. What a round leaves behind is
found where these files say, so the next round's follow from them alone. Run as a module it writes
them: ``--project-root R --round-id I --skillbank B --curriculum C --export E``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainer.canonical import safe_name
from trainer.config import DEFAULT_MASK_SEED, DEFAULT_SEED, AnalystConfig, EvaluateConfig
from trainer.config_files import parse_config
from trainer.engines.slime.settings import parse_hook_settings
from trainer.errors import InputError
from trainer.files import write_text
from trainer.gate.config import GateConfig

SERVED_NAME = "Qwen/Qwen3.5-4B"
CHECKPOINT = "qwen35-4b"


@dataclass(frozen=True, slots=True)
class RoundInputs:
    """What a round is made of. ``export`` is the folder that the gate's server serves."""

    root: Path
    round_id: str
    skillbank: Path
    curriculum: Path
    export: Path
    history_ledger: Path | None = None
    profile: str = "compat"
    catalogue: Path | None = None
    splits: Path | None = None
    port: int = 30000
    max_tokens: int = 4096

    @property
    def folder(self) -> Path:
        """Where the files of the round are written."""
        return self.root / "runs" / "loop" / safe_name(self.round_id)

    @property
    def training(self) -> Path:
        """Where the hooks record the round."""
        return self.root / "runs" / "slime-training" / safe_name(self.round_id)

    def output(self, stage: str) -> Path:
        """Where a stage of the round writes: ``online-analysis``, ``bare-val``, ``online-gate``."""
        return self.root / "runs" / f"{self.round_id}-{stage}"


def hooks_document(inputs: RoundInputs) -> dict[str, Any]:
    """``slime.yaml``: the keys of ``--custom-config-path``."""
    return {
        "shopsim_skillbank_path": str(inputs.skillbank),
        "shopsim_curriculum_path": str(inputs.curriculum),
        "shopsim_training_output_dir": str(inputs.training.parent),
        "shopsim_system_prompt_file": str(
            inputs.root / "configs" / "slime" / "prompts" / "persona_single_turn.txt"
        ),
        "shopsim_environment": "http",
        "shopsim_environment_base_url": "http://127.0.0.1:5700",
        "shopsim_environment_profile": None if inputs.profile == "mini" else inputs.profile,
        "shopsim_environment_timeout": 30,
        "shopsim_environment_persona": True,
        "shopsim_environment_trust_env": False,
        "shopsim_episode_concurrency": 32,
        "shopsim_max_steps": 30,
        "shopsim_full_skill_retry": True,
        "shopsim_max_consecutive_failed_groups": 8,
        "shopsim_tool_parser": "qwen3_coder",
        "shopsim_reasoning_parser": "qwen3",
    }


def analysis_document(inputs: RoundInputs) -> dict[str, Any]:
    """``analysis.yaml``: from the round's triage to at most six candidates."""
    return {
        "stage": "analyse",
        "name": inputs.round_id,
        "round_id": inputs.round_id,
        "output_dir": str(inputs.output("online-analysis")),
        "training_dir": str(inputs.training),
        "skillbank": str(inputs.skillbank),
        "ledger_history": _text(inputs.history_ledger),
        "proposal_checkpoint": f"{CHECKPOINT}-{inputs.round_id}",
        "world": _world(inputs),
        "analyst": {"kind": "none", "max_candidates": 6},
    }


def validation_document(inputs: RoundInputs) -> dict[str, Any]:
    """``val.yaml``: the bare run of the round's checkpoint on the whole validation split."""
    return {
        "stage": "evaluate",
        "name": f"{inputs.round_id}-bare-val",
        "output_dir": str(inputs.output("bare-val")),
        "seed": DEFAULT_SEED,
        "world": _world(inputs),
        "policy": _policy(inputs),
        "tasks": {"split": "val", "repeats": 1},
        "skills": {"provider": "none"},
        "max_turns": 30,
    }


def gate_document(inputs: RoundInputs) -> dict[str, Any]:
    """``gate.yaml``: masked against bare on the same tasks and the same server."""
    return {
        "stage": "gate",
        "name": f"{inputs.round_id}-online-gate",
        "output_dir": str(inputs.output("online-gate")),
        "candidate_pool": str(inputs.output("online-analysis") / "candidate_pool.json"),
        "bare_run": str(inputs.output("bare-val")),
        "world": _world(inputs),
        "policy": _policy(inputs),
        "seed": DEFAULT_SEED,
        "mask_seed": DEFAULT_MASK_SEED,
        "max_turns": 30,
        "profile": "published",
        "active_skill_budget": 10,
    }


def _world(inputs: RoundInputs) -> dict[str, Any]:
    return {
        "profile": inputs.profile,
        "catalogue": _text(inputs.catalogue),
        "splits": _text(inputs.splits),
    }


def _policy(inputs: RoundInputs) -> dict[str, Any]:
    return {
        "engine": "endpoint",
        "checkpoint": str(inputs.export),
        "temperature": 0.6,
        "max_new_tokens": inputs.max_tokens,
        "endpoint": {
            "base_url": f"http://127.0.0.1:{inputs.port}/v1",
            "model": SERVED_NAME,
            "checkpoint_id": f"{inputs.round_id}-checkpoint",
            "top_p": 1.0,
            "timeout_seconds": 180,
            "attempts": 3,
            "send_seed": False,
            "tool_choice": "auto",
            "concurrency": 32,
            "extra_body": {"enable_thinking": True},
        },
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def write_round(inputs: RoundInputs) -> dict[str, Path]:
    """Write the four files and return them by stage. Each is read back by its own checker."""
    documents: dict[str, Mapping[str, Any]] = {
        "slime": hooks_document(inputs),
        "analysis": analysis_document(inputs),
        "val": validation_document(inputs),
        "gate": gate_document(inputs),
    }
    files = {name: inputs.folder / f"{name}.yaml" for name in documents}
    parse_hook_settings(documents["slime"], file=files["slime"])
    parse_config(dict(documents["analysis"]), AnalystConfig, file=files["analysis"])
    parse_config(dict(documents["val"]), EvaluateConfig, file=files["val"])
    parse_config(dict(documents["gate"]), GateConfig, file=files["gate"])
    for name, document in documents.items():
        write_text(files[name], yaml.safe_dump(dict(document), allow_unicode=True, sort_keys=False))
    return files


def main(argv: Sequence[str] | None = None) -> int:
    """Write a round's files and print where they are."""
    parser = argparse.ArgumentParser(prog="python -m trainer.engines.slime.rounds")
    parser.add_argument("--project-root", type=Path, required=True)
    parser.add_argument("--round-id", required=True)
    parser.add_argument("--skillbank", type=Path, required=True)
    parser.add_argument("--curriculum", type=Path, required=True)
    parser.add_argument("--export", type=Path, required=True, help="folder the gate serves")
    parser.add_argument("--history-ledger", type=Path)
    parser.add_argument("--profile", default="compat")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--splits", type=Path)
    args = parser.parse_args(argv)
    inputs = RoundInputs(
        root=args.project_root.absolute(),
        round_id=args.round_id,
        skillbank=args.skillbank.absolute(),
        curriculum=args.curriculum.absolute(),
        export=args.export.absolute(),
        history_ledger=args.history_ledger and args.history_ledger.absolute(),
        profile=args.profile,
        catalogue=args.catalogue and args.catalogue.absolute(),
        splits=args.splits and args.splits.absolute(),
        port=int(os.environ.get("SGLANG_PORT", "30000")),
        max_tokens=int(os.environ.get("ROLLOUT_MAX_RESPONSE_LEN", "4096")),
    )
    try:
        files = write_round(inputs)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps({name: str(path) for name, path in files.items()}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
