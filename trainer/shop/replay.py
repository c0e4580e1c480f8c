"""Replays a finished trace in the shop and names the first difference.

The trace's actions are carried out again and every reply is compared with the recorded one. Traces
of this project hold structured actions and are compared whole; published traces hold wire text and
texts of another wording, so only their structure is compared. A trace of another environment is
refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.errors import InputError
from trainer.shop.action_text import read_action
from trainer.shop.identity import IDENTITY
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, StepResult
from trainer.shop.world import World

#: fields of a reply that are not the shop's
_FOREIGN = frozenset({"over", "message", "idx", "env_idx", "lease_id", "action"})
_TEXTS = frozenset({"observation", "message"})
_STRUCTURED = re.compile(r"(search|click)\[(.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first departs from the record. ``step`` is None for the final reply."""

    episode_id: str
    step: int | None
    field: str
    recorded: Any
    replayed: Any

    def to_record(self) -> dict[str, Any]:
        return {
            "episode_id": self.episode_id,
            "step": self.step,
            "field": self.field,
            "recorded": self.recorded,
            "replayed": self.replayed,
        }


class _Departure(Exception):
    def __init__(self, field: str, recorded: Any, replayed: Any) -> None:
        super().__init__(field)
        self.field = field
        self.recorded = recorded
        self.replayed = replayed


def replay(world: World, trace: Mapping[str, Any]) -> Difference | None:
    """The first difference, or None. Raises InputError when the trace is of another environment."""
    check_environment(world, trace)
    return _Replay(world, trace).first_difference()


def check_environment(world: World, trace: Mapping[str, Any]) -> None:
    """Refuse to compare episodes of different environments."""
    recorded = provenance_of(trace, "environment")
    identity = world.identity()
    for name in IDENTITY:
        if name in recorded and recorded[name] != identity[name]:
            raise InputError(
                f"the trace was recorded with another {name}; this world has {identity[name]!r}",
                field=f"provenance.environment.{name}",
                value=recorded[name],
                remedy="Load the profile and the catalogue that the trace names",
            )


def provenance_of(trace: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """What a trace says about its ``environment`` or ``runtime``; empty when it is silent."""
    provenance: Mapping[str, Any] = trace.get("provenance") or {}
    return provenance.get(part) or {}


class _Replay:
    def __init__(self, world: World, trace: Mapping[str, Any]) -> None:
        self._trace = trace
        self._ours = "profile" in provenance_of(trace, "environment")
        limit = provenance_of(trace, "runtime").get("max_steps") if self._ours else None
        self._session = ShopSession(world, trace["job"]["task_id"], max_actions=limit)
        self._ignored = _FOREIGN if self._ours else _FOREIGN | _TEXTS

    def first_difference(self) -> Difference | None:
        step: int | None = 0
        try:
            self._compare("reset", self._trace.get("reset") or {}, self._reset())
            last: StepResult | None = None
            for recorded in self._trace["steps"]:
                step = recorded["step_index"]
                if recorded.get("action") is not None:
                    last = self._step(recorded)
            step = None
            self._final(last)
        except _Departure as found:
            episode_id = str(self._trace.get("episode_id", ""))
            return Difference(episode_id, step, found.field, found.recorded, found.replayed)
        return None

    def _reset(self) -> dict[str, Any]:
        page = self._session.reset()
        return {"observation_state": page.state, "observation": page.text}

    def _step(self, recorded: Mapping[str, Any]) -> StepResult:
        if self._session.done:
            raise _Departure("done", False, True)
        text = recorded["action"]
        action = self._read(text)
        result = (
            self._session.step(action)
            if isinstance(action, Action)
            else self._session.reject(text, action)
        )
        if recorded.get("environment") is not None:
            self._compare("environment", recorded["environment"], _reply(result))
        return result

    def _read(self, text: str) -> Any:
        found = _STRUCTURED.fullmatch(text) if self._ours else None
        if found is None:
            return read_action(text)
        return Action("search" if found[1] == "search" else "click", found[2])

    def _final(self, last: StepResult | None) -> None:
        final = self._trace.get("final")
        if final is None:
            return
        if not self._session.done:
            reason = final.get("termination_reason")
            if reason not in self._session.world.profile.caller_terminations:
                raise _Departure("final.termination_reason", reason, None)
            last = self._session.terminate(reason)
        if last is not None:
            self._compare("final", final, _reply(last))

    def _compare(self, path: str, recorded: Mapping[str, Any], replayed: Mapping[str, Any]) -> None:
        for name, value in recorded.items():
            if name in replayed and name not in self._ignored:
                compare(f"{path}.{name}", value, replayed[name], self._ignored - {"action"})


def _reply(result: StepResult) -> dict[str, Any]:
    return {
        "done": result.done,
        "reward": result.reward,
        "observation": result.observation.text,
        "observation_state": result.observation.state,
        "action_feedback": result.feedback,
        "reward_detail": result.reward_detail,
        "purchase": result.purchase,
        "goal": result.goal,
        "termination_reason": result.termination_reason,
    }


def compare(path: str, recorded: Any, replayed: Any, ignored: frozenset[str]) -> None:
    """Raise at the first place where two JSON values differ."""
    if isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        for name in [*recorded, *(name for name in replayed if name not in recorded)]:
            if name in ignored:
                continue
            if name not in recorded or name not in replayed:
                raise _Departure(f"{path}.{name}", recorded.get(name), replayed.get(name))
            compare(f"{path}.{name}", recorded[name], replayed[name], ignored)
    elif _is_list(recorded) and _is_list(replayed):
        for place, (left, right) in enumerate(zip(recorded, replayed, strict=False)):
            compare(f"{path}[{place}]", left, right, ignored)
        if len(recorded) != len(replayed):
            raise _Departure(f"{path}.length", len(recorded), len(replayed))
    elif recorded != replayed:
        raise _Departure(path, recorded, replayed)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
