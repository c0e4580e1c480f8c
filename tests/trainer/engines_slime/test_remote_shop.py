"""The client of the published shop protocol, against a service in this process."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trainer.engines.slime.remote_shop import RemoteSession
from trainer.rollout.episode import TechnicalFailure
from trainer.shop.types import Action

PAGE = {
    "observation": "page",
    "observation_state": {
        "observation_version": "v",
        "search_available": True,
        "actions": [],
    },
}
RESET = {
    **PAGE,
    "task_instruction": "buy a cup",
    "user_persona": {"name": "x"},
    "env_idx": 3,
    "lease_id": "l" * 32,
    "environment_version": "e1",
}


class Service:
    """Answers from a table of action -> (status, body); remembers what it was asked."""

    def __init__(self):
        self.answers = {
            "reset": (200, {"result": RESET}),
            "interact": (200, {"result": {**PAGE, "done": False, "reward": 0.0}}),
            "terminate": (
                200,
                {
                    "result": {
                        **PAGE,
                        "done": True,
                        "reward": 0.0,
                        "reward_detail": {"r_strict": 0.0, "r_success": 0.0},
                        "termination_reason": "action_limit",
                    }
                },
            ),
            "release_one": (200, {"result": {"message": "ok"}}),
        }
        self.asked = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append(body)
                status, data = service.answers[body["action"]]
                text = data if isinstance(data, str) else json.dumps(data)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        serve = partial(self.server.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def service():
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def session(service):
    made = RemoteSession(service.url, 7, timeout=5.0, persona=True, trust_env=False)
    yield made
    made.close()


def test_a_session_leases_plays_and_releases(service, session):
    assert session.reset().text == "page"
    assert session.task.instruction == "buy a cup"
    assert session.task.persona == {"name": "x"}
    assert session.environment_version == "e1"
    result = session.step(Action("search", "cup"))
    assert result.done is False
    assert session.terminate("action_limit").reward_detail["r_success"] == 0.0
    session.close()
    session.close()
    lease = {"env_idx": 3, "lease_id": "l" * 32}
    assert service.asked == [
        {
            "action": "reset",
            "idx": 7,
            "if_persona": True,
            "include_private_goal": False,
            "interaction_mode": "single_turn",
        },
        {"action": "interact", "response": "search[cup]", **lease},
        {"action": "terminate", "termination_reason": "action_limit", **lease},
        {"action": "release_one", **lease},
    ]


def test_a_second_reset_is_refused_here(session):
    session.reset()
    with pytest.raises(RuntimeError, match="already holds a lease"):
        session.reset()


@pytest.mark.parametrize(
    ("action", "answer", "message"),
    [
        ("reset", (200, {"result": {"error": "unknown task"}}), "unknown task"),
        ("reset", (400, {"result": {"error": "bad"}}), "bad"),
        ("reset", (500, "<html>"), "JSONDecodeError"),
        ("reset", (200, {"other": 1}), "without a result"),
        ("reset", (200, {"result": {**RESET, "observation": None}}), "no observation"),
        ("reset", (200, {"result": {**RESET, "task_instruction": 5}}), "no task_instruction"),
        (
            "reset",
            (200, {"result": {**RESET, "observation_state": {"actions": []}}}),
            "has no version",
        ),
        ("interact", (409, {"result": {"error": "stale lease"}}), "stale lease"),
        ("interact", (200, {"result": {**PAGE, "done": "yes"}}), "done is 'yes'"),
        ("interact", (503, {"result": {}}), "HTTP 503"),
        (
            "terminate",
            (200, {"result": {**PAGE, "done": True, "termination_reason": "purchase"}}),
            "not 'action_limit'",
        ),
    ],
)
def test_every_broken_answer_is_a_failure_of_the_environment(
    service, session, action, answer, message
):
    service.answers[action] = answer
    with pytest.raises(TechnicalFailure, match=message) as caught:
        session.reset()
        session.step(Action("search", "cup"))
        session.terminate("action_limit")
    assert caught.value.category == "environment"


def test_a_service_that_does_not_answer_is_a_failure_of_the_environment():
    session = RemoteSession("http://127.0.0.1:9", 7, timeout=1.0, persona=True, trust_env=False)
    with pytest.raises(TechnicalFailure):
        session.reset()
    session.close()


def test_a_lease_is_forgotten_even_when_its_release_fails(service, session):
    session.reset()
    service.answers["release_one"] = (409, {"result": {"error": "gone"}})
    session.close()
    session.close()
    assert [body["action"] for body in service.asked].count("release_one") == 1
