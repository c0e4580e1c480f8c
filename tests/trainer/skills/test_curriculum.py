from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.skills.test_bank import GOLDEN
from trainer.errors import InputError
from trainer.files import read_json
from trainer.skills.bank import load_bank, parse_bank
from trainer.skills.curriculum import (
    Curriculum,
    load_curriculum,
    parse_curriculum,
    write_curriculum,
)
from trainer.skills.curriculum_build import build_curriculum, rho

STATE_IDS = {
    "cold-start": "49ac001d2e041be7a0dd717e4473b6a98529edef55f4d69bc06ce120307ce5a3",
    "round-001": "747223fbeca202a01a735b99fc578cc12b45a00709948e49b5dc841755fc4236",
    "round-002": "36b65614390862ece495d46d23626f7bf2d8e1ae74c806dace646309d587f816",
}


def golden(**changes: Any) -> Curriculum:
    settings: dict[str, Any] = {
        "round_id": "round-000",
        "skill_free_probability": 0.2,
        "rho_min": 0.2,
        "rho_max": 0.8,
        "seed": 7,
        "schema": "v1",
        "source_path": "/golden/bank.json",
    }
    return build_curriculum(parse_bank(GOLDEN), **(settings | changes))


def test_the_golden_curriculum_has_the_golden_state_id() -> None:
    built = golden()
    assert built.rho == {"a": 0.8, "b": 0.5}
    assert built.state_id == "d353963573ce3972858687d2b724f24656452a10af12ca76ad14ea12b82779a1"


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (0.029279409320286554, 0.4733805357216591),
        (1.9707235252860303e-05, 0.2001840055744324),
        (0.006758092017785694, 0.26310000301127795),
        (0.0749709062867155, 0.8999999999999999),
        (0.0406628634003301, 0.5796673375052258),
    ],
)
def test_rho_has_the_published_bits(effect: float, expected: float) -> None:
    assert rho(effect, 0.0749709062867155, 0.2, 0.9) == expected


@pytest.mark.parametrize("folder", STATE_IDS)
def test_published_curricula_load_and_are_rebuilt_from_their_banks(
    published: Path, folder: str
) -> None:
    stored = load_curriculum(published / "artifacts" / folder / "curriculum.json")
    assert stored.state_id == STATE_IDS[folder]
    number = 0 if folder == "cold-start" else int(folder[-3:])
    bank_folder = "cold-start" if number == 0 else f"round-{number - 1:03d}/gate"
    rebuilt = build_curriculum(
        load_bank(published / "artifacts" / bank_folder / "selected_skillbank.json"),
        round_id=f"round-{number:03d}",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
        seed=20260901,
        schema="v1",
        source_path=stored.document["source"]["skillbank_path"],
    )
    assert rebuilt.state_id == STATE_IDS[folder]
    left, right = dict(rebuilt.document), dict(stored.document)
    del left["created_at"], right["created_at"]
    assert left == right
    assert list(rebuilt.document) == list(stored.document)


def test_v1_depends_on_the_path_and_v2_does_not() -> None:
    assert golden().state_id != golden(source_path="/elsewhere.json").state_id
    here, there = golden(schema="v2"), golden(schema="v2", source_path="/elsewhere.json")
    assert here.state_id == there.state_id == golden(schema="v2", source_path=None).state_id
    assert there.document["notes"] == {"skillbank_path": "/elsewhere.json"}
    assert "skillbank_path" not in there.document["source"]


def test_v1_without_a_path_is_refused() -> None:
    with pytest.raises(InputError, match="source_path"):
        golden(source_path=None)


def test_an_explicit_scale_is_recorded_and_clips() -> None:
    built = golden(contribution_scale=0.1)
    assert built.rho == {"a": 0.8, "b": 0.8}
    mapping = built.document["source"]["probability_mapping"]
    assert (mapping["contribution_scale"], mapping["scale_source"]) == (0.1, "explicit")


@pytest.mark.parametrize(
    "changes",
    [
        {"skill_free_probability": 1.1},
        {"skill_free_probability": True},
        {"rho_min": float("nan")},
        {"rho_min": 0.9},
        {"contribution_scale": 0.0},
        {"contribution_scale": float("inf")},
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        golden(**changes)


@pytest.mark.parametrize("effect", [0.0, -0.1, None, "0.1", True, float("nan")])
def test_a_chunk_without_a_positive_effect_is_never_admitted(effect: object) -> None:
    document = copy.deepcopy(GOLDEN)
    document["skills"][0]["metadata"]["estimated_effect"] = effect  # type: ignore[index]
    for schema in ("v1", "v2"):
        with pytest.raises((InputError, ValueError)):
            build_curriculum(
                parse_bank(document),
                round_id="r",
                skill_free_probability=0.2,
                rho_min=0.2,
                rho_max=0.9,
                schema=schema,  # type: ignore[arg-type]
                source_path="p",
            )


def test_a_held_chunk_gets_the_smallest_inclusion_in_v2_only() -> None:
    document = copy.deepcopy(GOLDEN)
    metadata = {"estimated_effect": -0.01, "validation_result": "held"}
    document["skills"][1]["metadata"] = metadata  # type: ignore[index]
    settings: dict[str, Any] = {
        "round_id": "r",
        "skill_free_probability": 0.2,
        "rho_min": 0.3,
        "rho_max": 0.9,
        "source_path": "p",
    }
    assert build_curriculum(parse_bank(document), **settings).rho["b"] == 0.3
    with pytest.raises(InputError, match="positive effect"):
        build_curriculum(parse_bank(document), schema="v1", **settings)


def test_an_empty_bank_gives_an_empty_curriculum() -> None:
    built = build_curriculum(
        parse_bank({"skills": []}),
        round_id="r",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
    )
    assert built.chunks == ()
    assert built.document["source"]["probability_mapping"]["contribution_scale"] == 1.0


def test_times_are_kept_out_of_the_state(tmp_path: Path) -> None:
    built = golden()
    write_curriculum(tmp_path / "c.json", built)
    document = read_json(tmp_path / "c.json")
    document["created_at"] = "2000-01-01T00:00:00.000000+00:00"
    assert parse_curriculum(document).state_id == built.state_id


def _broken(change: str) -> dict[str, Any]:
    document = copy.deepcopy(dict(golden().document))
    chunk = document["chunks"][0]
    if change == "q":
        document["skill_free_probability"] = 0.3
    elif change == "content":
        chunk["content"] += "!"
    elif change == "state":
        document["state_id"] = ""
    elif change == "schema":
        document["schema_version"] = "v0"
    elif change == "missing":
        del document["source"]
    elif change == "duplicate":
        document["chunks"].append(chunk)
    elif change == "rho":
        chunk["inclusion_probability"] = 1.5
    elif change == "contribution":
        chunk["contribution"] = "much"
    elif change == "blank":
        chunk["skill_id"] = ""
    elif change == "chunks":
        document["chunks"] = {}
    return document


@pytest.mark.parametrize(
    "change",
    [
        "q",
        "content",
        "state",
        "schema",
        "missing",
        "duplicate",
        "rho",
        "contribution",
        "blank",
        "chunks",
    ],
)
def test_a_changed_curriculum_is_refused(change: str) -> None:
    with pytest.raises(InputError):
        parse_curriculum(_broken(change))
