"""What a published folder states once: chosen cases, counts of the cold start, settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.analysis.reader import Reader
from trainer.analysis.schema_outcomes import Case, CaseSide
from trainer.analysis.schema_values import Figure

Json = Mapping[str, Any]
ANALYSIS = "artifacts/analysis"


def cases_on_record(reader: Reader) -> list[Case]:
    """The cases that the publisher chose, with his rules."""
    name = f"{ANALYSIS}/behavior/cases.json"
    found = []
    for case in reader.json(name) or []:
        sides = [_side(cohort, side) for cohort, side in case["conditions"].items()]
        found.append(
            Case(rule=case["selection_rule"], task_id=case["task_id"], a=sides[0], b=sides[1],
                 source=name)
        )  # fmt: skip
    return found


def _side(cohort: str, side: Json) -> CaseSide:
    metrics = side["metrics"]
    return CaseSide(
        cohort=cohort,
        success=bool(metrics["success"]),
        reward=metrics["reward"],
        turns=metrics["model_steps"],
        tokens=metrics["generated_tokens"],
        metrics={
            k: v for k, v in metrics.items() if isinstance(v, int | float) and not k.endswith("_id")
        },
        actions=list(side["actions"]),
    )


def facts_of(reader: Reader) -> dict[str, Figure]:
    """Single figures that belong to no round."""
    found: dict[str, Figure] = {}

    def fact(key: str, value: Any, of: str, source: str) -> None:
        if value is not None:
            found[key] = Figure(value=value, n=value if isinstance(value, int) else None, of=of,
                                source=source)  # fmt: skip

    cold = reader.json("artifacts/cold-start/analysis_summary.json")
    if cold:
        source = "artifacts/cold-start/analysis_summary.json"
        fact("cold_start_trajectories", cold["input"]["total"], "trajectories", source)
        fact("cold_start_successes", cold["input"]["success"], "trajectories", source)
        fact("cold_start_failures", cold["input"]["failure"], "trajectories", source)
        fact("cold_start_cards", cold["evidence_cards"], "cards", source)
    selection = reader.json("artifacts/eval/ranking/ranking_selection.json")
    for chunk, value in (selection or {}).get("all_coefficients", {}).items():
        found[f"base_gate/{chunk}"] = Figure(
            value=value, n=None, of="masked rollouts",
            source="artifacts/eval/ranking/ranking_selection.json",
        )  # fmt: skip
    draft = reader.json("artifacts/cold-start/initial_skillbank.json")
    if draft:
        source = "artifacts/cold-start/initial_skillbank.json"
        fact("cold_start_draft_chunks", len(draft["skills"]), "chunks", source)
    extraction = reader.json(f"{ANALYSIS}/behavior/extraction.json")
    if extraction:
        source = f"{ANALYSIS}/behavior/extraction.json"
        fact("training_episodes", extraction["train_files"], "episodes", source)
        fact("training_turns", extraction["train_turns"], "turns", source)
        fact("evaluation_cohorts", len(extraction["eval_sources"]), "cohorts", source)
    splits_name = "ShopSimulator/shop_env/configs/persona_splits.v1.json"
    splits = reader.json(splits_name)
    for split in ("train", "val", "test"):
        if splits:
            fact(f"{split}_tasks", len(splits["splits"][split]["task_ids"]), "tasks", splits_name)
    return found


def settings_of(reader: Reader) -> dict[str, Any]:
    """The settings that the artefacts state."""
    found: dict[str, Any] = {"engine": "slime", "profile": "published"}
    curriculum = reader.json("artifacts/cold-start/curriculum.json")
    if curriculum:
        mapping = curriculum["source"]["probability_mapping"]
        found["curriculum"] = {
            "skill_free_probability": curriculum["skill_free_probability"],
            "rho_min": mapping["rho_min"],
            "rho_max": mapping["rho_max"],
        }
        found["mask_seed"] = curriculum["seed"]
    manifest = reader.json("artifacts/round-000/gate/online_gate_manifest.json")
    if manifest:
        model = manifest["input"]["model"]
        found["gate"] = {
            "profile": "published",
            "active_skill_budget": manifest["config"]["active_skill_budget"],
            "estimator": manifest["protocol"]["estimator"],
            "formula": manifest["protocol"]["formula"],
            "tasks": len(manifest["input"]["task_ids"]),
        }
        found["model"] = {"name": model["model"], **model["sampling"]}
        found["model"].pop("extra_body", None)
        seen = manifest["input"]["observed_provenance"]
        found["environment"] = {
            key: seen["environment"][0].get(key)
            for key in ("environment_version", "observation_version", "interaction_mode", "persona")
        }
        found["prompt"] = {"prompt_version": seen["prompt"][0]["prompt_version"]}
        found["runtime"] = dict(seen["runtime"][0])
    return found
