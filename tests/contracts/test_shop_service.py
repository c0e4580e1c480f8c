"""The hooks against the real shop service: episodes over HTTP, slots that all come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.contracts.shopping_scripts import by_session, losing, tasks, world
from tests.ports import free_port
from trainer.engines.slime.shops import OwnSession
from trainer.errors import InputError
from trainer.files import read_json
from trainer.shop.identity import OtherEnvironment
from trainer.shop.replay import replay

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 3
TOKEN_ENV = "TEST_SHOP_TOKEN"
TOKEN = "b7d2-only-for-this-test"


def health(url):
    with urllib.request.urlopen(f"{url}/healthz", timeout=5) as reply:
        return json.loads(reply.read())


def over_http(url):
    """The keys that lead a worker to the service, with its token's variable."""
    return {
        "shopsim_environment": "http",
        "shopsim_environment_base_url": url,
        "shopsim_environment_token_env": TOKEN_ENV,
    }


@pytest.fixture(autouse=True)
def token(monkeypatch):
    """The token in the worker's environment."""
    monkeypatch.setenv(TOKEN_ENV, TOKEN)


@pytest.fixture(scope="module")
def service():
    """The service over the built-in standard shop, with a token and fewer slots than episodes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "trainer", "shop", "serve", "--profile", "standard"),
            *("--port", str(port), "--slots", str(SLOTS), "--token-env", TOKEN_ENV),
        ],
        cwd=ROOT,
        env={**os.environ, TOKEN_ENV: TOKEN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while True:
        try:
            if health(url)["ready"]:
                break
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, "the service ended"
            assert time.monotonic() < deadline, "the service never became ready"
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(timeout=30)


def test_a_group_and_its_retry_are_played_in_the_service_and_leave_no_slot_taken(double, service):
    double.play(by_session(lambda group, sample, retry: losing(tasks()[0])))
    args = double.args(
        **over_http(service),
        shopsim_episode_concurrency=SLOTS,
        n_samples_per_prompt=6,
    )
    rollouts = double.generate(double.group(0, size=6), args)
    assert all(rows[0].metadata["shopsim_scored"] for rows in rollouts)
    assert {rows[0].reward["r_success"] for rows in rollouts} == {0.0}
    folder = double.folder / "training" / "round-000" / "group-000000000"
    triage = read_json(folder / "triage.json")
    assert triage["classification"] == "full_skill_failure_pending_analysis"
    trace = read_json(folder / "rollout-0.json")
    assert trace["provenance"]["environment"]["adapter"] == "shopsimulator_http"
    assert trace["final"]["termination_reason"] == "purchase"
    assert "lease_id" not in json.dumps(trace)
    assert TOKEN not in "".join(path.read_text() for path in double.folder.rglob("*.json*"))
    named = {key: trace["provenance"]["environment"][key] for key in world().identity()}
    assert named == world().identity()
    assert replay(world(), trace) is None
    assert health(service)["free_slots"] == SLOTS


def test_without_its_token_the_service_plays_nothing(double, service):
    engine = double.play(lambda session, turn: "x")
    args = double.args(**{**over_http(service), "shopsim_environment_token_env": None})
    rows = double.generate(double.group(0), args)[0]
    assert rows[0].metadata["shopsim_failure"] == "environment"
    assert not engine.requests


def test_a_token_that_is_named_and_not_set_ends_the_job_at_once(double, monkeypatch):
    from trainer.engines.slime.settings import hook_settings
    from trainer.engines.slime.shops import shop_of

    monkeypatch.delenv(TOKEN_ENV)
    args = double.args(**over_http("http://127.0.0.1:9"))
    with pytest.raises(InputError, match="empty or not set") as caught:
        shop_of(hook_settings(args))
    assert caught.value.field == "shopsim_environment_token_env"
    assert caught.value.value == TOKEN_ENV


def test_inside_and_outside_of_the_worker_the_same_episode_is_played(double, service):
    play = losing(tasks()[0])
    told = {}
    for kind in ("in_process", "http"):
        engine = double.play(by_session(lambda group, sample, retry: play))
        from trainer.engines.slime import runtime

        runtime.reset()
        args = double.args(
            **{**over_http(service), "shopsim_environment": kind},
            shopsim_full_skill_retry=False,
        )
        rows = double.generate(double.group(0), args)
        told[kind] = (
            [request["input_ids"] for request in engine.requests if "-0-0" in request["session"]],
            rows[0][0].reward,
        )
    assert told["http"] == told["in_process"]


def test_a_service_that_is_gone_leaves_unscored_episodes_with_their_cause(double):
    double.play(lambda session, turn: "x")
    args = double.args(
        shopsim_environment="http", shopsim_environment_base_url="http://127.0.0.1:9"
    )
    rows = double.generate(double.group(0), args)[0]
    assert rows[0].metadata["shopsim_failure"] == "environment"
    assert rows[0].metadata["shopsim_abort_reason"] == "ShopServiceError"


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ({"shopsim_environment_profile": "compat"}, "another profile.*'compat' is wanted"),
        ({"shopsim_environment_catalogue_sha256": "0" * 64}, "another catalogue_sha256"),
    ],
)
def test_a_service_of_another_environment_ends_the_job(double, service, named, found):
    engine = double.play(by_session(lambda group, sample, retry: losing(tasks()[0])))
    args = double.args(**over_http(service), **named)
    with pytest.raises(OtherEnvironment, match=found):
        double.generate(double.group(0), args)
    assert not engine.requests
    assert health(service)["free_slots"] == SLOTS


def test_the_service_that_the_settings_name_is_played_in(double, service):
    double.play(by_session(lambda group, sample, retry: losing(tasks()[0])))
    args = double.args(
        **over_http(service),
        shopsim_environment_profile="standard",
        shopsim_environment_catalogue_sha256=world().identity()["catalogue_sha256"],
        shopsim_full_skill_retry=False,
    )
    rows = double.generate(double.group(0), args)
    assert all(row[0].metadata["shopsim_scored"] for row in rows)


def told(url, **identity):
    """A service session that was told ``identity``."""
    return OwnSession(SimpleNamespace(url=url, served=lambda: identity), 0)


def test_a_service_that_comes_back_as_another_one_is_refused(double):
    from trainer.engines.slime.settings import hook_settings
    from trainer.engines.slime.shops import shop_of

    shop = shop_of(hook_settings(double.args(shopsim_environment="http")))
    assert "profile" not in shop.identity()
    shop.meet(told("http://a", profile="compat", catalogue_sha256="1", primary_reward="r"))
    assert shop.identity()["catalogue_sha256"] == "1"
    assert shop.world.profile.primary_reward == "r"
    with pytest.raises(OtherEnvironment, match="another catalogue_sha256; '1' is wanted"):
        shop.meet(told("http://a", profile="compat", catalogue_sha256="2"))
    assert shop.identity()["catalogue_sha256"] == "1"


@pytest.mark.parametrize(
    ("named", "served", "found"),
    [
        ({"shopsim_environment_profile": "compat"}, {"environment_version": "v7"}, "another env"),
        ({"shopsim_environment_profile": "compat"}, {}, "does not tell its environment_version"),
        (
            {"shopsim_environment_catalogue_sha256": "0" * 64},
            {"environment_version": "shopsimulator-paper-aligned-v8"},
            "does not tell its catalogue",
        ),
    ],
)
def test_of_the_published_service_what_it_tells_is_checked(double, named, served, found):
    from trainer.engines.slime.settings import hook_settings
    from trainer.engines.slime.shops import shop_of

    shop = shop_of(hook_settings(double.args(shopsim_environment="http", **named)))
    with pytest.raises(OtherEnvironment, match=found):
        shop.meet(told("http://a", **served))


def test_the_live_preflight_refuses_a_service_of_another_environment(double, service, tmp_path):
    from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
    from trainer.engines.slime.preflight import check_slime

    launch = make_launch(tmp_path / "launch")
    states = {}
    for profile in ("standard", "compat"):
        write_hooks(
            tmp_path / "launch",
            shopsim_environment_base_url=service,
            shopsim_environment_profile=profile,
        )
        document = check_slime(launch, {}, live=True)
        states[profile] = {item["name"]: item["state"] for item in document["checks"]}[
            "live.environment"
        ]
    assert states == {"standard": "passed", "compat": "failed"}


def test_the_live_preflight_asks_the_service_for_free_slots(double, service, tmp_path):
    from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
    from trainer.engines.slime.preflight import check_slime

    launch = make_launch(tmp_path / "launch")
    states = {}
    for concurrency in (SLOTS, SLOTS + 1):
        write_hooks(
            tmp_path / "launch",
            shopsim_environment_base_url=service,
            shopsim_episode_concurrency=concurrency,
        )
        document = check_slime(launch, {}, live=True)
        assert document["scope"] == "live"
        items = {item["name"]: item["state"] for item in document["checks"]}
        states[concurrency] = (items["live.shop"], items["live.slots"])
    assert states == {SLOTS: ("passed", "passed"), SLOTS + 1: ("passed", "failed")}


def test_the_live_preflight_asks_whether_the_service_takes_the_token(double, service, tmp_path):
    from tests.trainer.engines_slime.launch_files import make_launch, write_hooks
    from trainer.engines.slime.preflight import check_slime

    launch = make_launch(tmp_path / "launch")

    def state(environ, **keys):
        write_hooks(tmp_path / "launch", shopsim_environment_base_url=service, **keys)
        document = check_slime(launch, environ, live=True)
        assert TOKEN not in json.dumps(document)
        named = {item["name"]: item["state"] for item in document["checks"]}
        return named.get("hooks.token"), named.get("live.token")

    key = {"shopsim_environment_token_env": TOKEN_ENV}
    assert state({TOKEN_ENV: TOKEN}, **key) == ("passed", "passed")
    assert state({TOKEN_ENV: "another"}, **key) == ("passed", "failed")
    assert state({}, **key) == ("failed", None)
    assert state({}) == (None, "failed")
