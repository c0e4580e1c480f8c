"""The episodes behind the slots: each request becomes a reply of the published shape (§5.3).

A reply to a numbered step is kept until the next one, so a client that lost it asks again and gets
the same reply; the action is never carried out twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.shop.action_text import read_action
from trainer.shop.service.errors import ServiceError
from trainer.shop.service.leases import Lease
from trainer.shop.service.requests import ResetRequest, read_call
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, StepResult
from trainer.shop.world import World

Reply = dict[str, Any]


@dataclass(slots=True)
class Episode:
    """One slot's episode, the number of its last step and the reply to it."""

    session: ShopSession
    name: str
    key: str
    reset_reply: Reply
    sequence: int = 0
    reply: Reply | None = None


class Episodes:
    """Episodes by slot number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_slot: dict[int, Episode] = {}
        self._by_key: dict[str, int] = {}

    def forget(self, slot: int) -> None:
        """Drop a slot's episode; the slot was released."""
        episode = self._by_slot.pop(slot, None)
        if episode is not None and episode.key:
            self._by_key.pop(episode.key, None)

    def known(self, key: str) -> tuple[int, Episode] | None:
        """The live episode that was reset with ``key``."""
        slot = self._by_key.get(key) if key else None
        return None if slot is None else (slot, self._by_slot[slot])

    def repeat_reset(self, key: str, request: ResetRequest) -> Reply | None:
        """The reply to an earlier reset with the same key, or None when there was none."""
        known = self.known(key)
        if known is None:
            return None
        _, episode = known
        if episode.session.task.task_id != request.task_id or episode.sequence:
            raise ServiceError(
                "key_in_use", "the idempotency key belongs to another episode in progress"
            )
        return episode.reset_reply

    def check_task(self, task_id: int) -> None:
        if task_id not in self.world.tasks:
            raise ServiceError("unknown_task", f"unknown task {task_id}")

    def reset(self, lease: Lease, request: ResetRequest) -> Reply:
        """Begin an episode on a leased slot."""
        profile = self.world.profile
        multi = request.mode == "multi_turn"
        session = ShopSession(
            self.world,
            request.task_id,
            max_actions=profile.max_actions_multi_turn if multi else profile.max_actions,
        )
        page, task = session.reset(), session.task
        shown = request.persona or profile.sends_persona_unasked
        reply: Reply = {
            "task_instruction": self.instruction(request),
            "observation": page.text,
            "observation_state": page.state,
            "message": "environment reset",
            "env_idx": lease.slot,
            "idx": task.task_id,
            "task_mode": "persona" if request.persona else "standard",
            "interaction_mode": request.mode,
            "environment_version": profile.environment_version,
            "user_persona": dict(task.persona) if shown else {},
            "lease_id": lease.id,
        }
        if request.private_goal:
            reply["private_task_instruction"] = task.instruction
            reply["goal_options"] = list(task.goal_options)
            reply["reason_key"] = None
        if request.key:
            reply["profile"] = profile.name
            self._by_key[request.key] = lease.slot
        self._by_slot[lease.slot] = Episode(
            session, f"slot-{lease.slot}-{task.task_id}", request.key, reply
        )
        return reply

    def instruction(self, request: ResetRequest) -> str:
        """The short text in persona mode of a persona task, otherwise the full one."""
        task = self.world.task(request.task_id)
        short = request.persona and bool(task.persona)
        return task.instruction_simple if short else task.instruction

    def interact(self, lease: Lease, sequence: int | None, request: Mapping[str, Any]) -> Reply:
        """Carry out one action, given as text or as a structured call."""
        episode = self._episode(lease)
        call = read_call(request)
        if (repeated := self._repeat(episode, sequence)) is not None:
            return repeated
        self._require_open(episode)
        text = request.get("response")
        action = read_action(text) if call is None else call
        if isinstance(action, Action):
            result = episode.session.step(action)
        else:
            result = episode.session.reject(text if isinstance(text, str) else "", action)
        reply = _reply(result, episode, lease)
        reply["action_feedback"] = result.feedback
        return self._keep(episode, sequence, reply)

    def terminate(self, lease: Lease, sequence: int | None, reason: object) -> Reply:
        """End the episode with zero score."""
        episode = self._episode(lease)
        allowed = self.world.profile.caller_terminations
        if reason not in allowed:
            raise ServiceError("bad_request", f"termination_reason must be one of {allowed}")
        if (repeated := self._repeat(episode, sequence)) is not None:
            return repeated
        self._require_open(episode)
        result = episode.session.terminate(reason)
        return self._keep(episode, sequence, _reply(result, episode, lease))

    def _episode(self, lease: Lease) -> Episode:
        try:
            return self._by_slot[lease.slot]
        except KeyError:
            raise ServiceError("stale_lease", f"slot {lease.slot} has no episode") from None

    @staticmethod
    def _require_open(episode: Episode) -> None:
        if episode.session.done:
            raise ServiceError("episode_over", f"episode {episode.name} is over")

    @staticmethod
    def _repeat(episode: Episode, sequence: int | None) -> Reply | None:
        if sequence is None or sequence == episode.sequence + 1:
            return None
        if sequence == episode.sequence and episode.reply is not None:
            return episode.reply
        raise ServiceError(
            "sequence_conflict",
            f"sequence {sequence} does not follow {episode.sequence}",
        )

    @staticmethod
    def _keep(episode: Episode, sequence: int | None, reply: Reply) -> Reply:
        episode.sequence += 1
        episode.reply = reply if sequence is not None else None
        return reply


def _reply(result: StepResult, episode: Episode, lease: Lease) -> Reply:
    reply: Reply = {
        "done": result.done,
        "over": result.done,
        "reward": result.reward,
        "observation": result.observation.text,
        "observation_state": result.observation.state,
        "message": "episode finished" if result.done else "action processed",
        "env_idx": lease.slot,
        "idx": episode.name,
        "reward_detail": result.reward_detail,
        "purchase": result.purchase,
        "goal": result.goal,
        "lease_id": lease.id,
    }
    if result.done:
        reply["termination_reason"] = result.termination_reason
    return reply
