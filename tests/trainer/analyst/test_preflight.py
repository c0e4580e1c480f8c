"""What ``check`` says about an analyst before anything is spent."""

from __future__ import annotations

import pytest

from trainer.analyst.settings import AnalystSettings
from trainer.errors import InputError
from trainer.preflight import checks
from trainer.preflight.inputs import Inputs
from trainer.shop.world import World, load_world

CHAT = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key_env": "ANALYST_TEST_KEY"}


def test_a_server_needs_its_key_in_the_environment(
    mini: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AnalystSettings.model_validate({"kind": "endpoint", "endpoint": CHAT})
    monkeypatch.delenv("ANALYST_TEST_KEY", raising=False)
    with pytest.raises(InputError, match="ANALYST_TEST_KEY"):
        checks.analyst(Inputs(world=mini), settings)
    monkeypatch.setenv("ANALYST_TEST_KEY", "k")
    assert checks.analyst(Inputs(world=mini), settings) == "m at http://127.0.0.1:1/v1"


def test_rules_need_a_world_of_words(mini: World) -> None:
    rules = AnalystSettings(kind="rule_based")
    assert checks.analyst(Inputs(world=mini), rules) == "rule_based"
    with pytest.raises(InputError, match="worlds of single words"):
        checks.analyst(Inputs(world=load_world("standard")), rules)


@pytest.mark.parametrize(
    ("value", "kind"), [("rule_based", "rule_based"), ({"kind": "none"}, "none")]
)
def test_a_kind_alone_is_a_whole_setting(value: object, kind: str) -> None:
    assert AnalystSettings.model_validate(value).kind == kind


def test_an_endpoint_stands_exactly_with_its_kind() -> None:
    for wrong in ({"kind": "endpoint"}, {"kind": "rule_based", "endpoint": CHAT}):
        with pytest.raises(ValueError, match="endpoint must be set exactly when"):
            AnalystSettings.model_validate(wrong)
