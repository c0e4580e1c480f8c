"""A client of the published wire protocol, for the published service and ours (environment.md
§5.6).

One client owns at most one lease. Towards the published service nothing is ever sent twice,
because a step that was lost may have been carried out. Towards our service requests are numbered,
so lost replies are asked for again, and a full pool is waited for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from trainer.shop.identity import check_served, served_identity
from trainer.shop.types import Action
from trainer.shop.wire import ShopServiceError, Wire, result_of

__all__ = ["ShopClient", "ShopServiceError"]

PATH = "/api/shop_agent"

Reply = dict[str, Any]


class ShopClient:
    """Drives one episode at a time. Not shared between threads."""

    def __init__(
        self,
        base_url: str,
        *,
        persona: bool = True,
        interaction_mode: str = "single_turn",
        timeout: float = 30.0,
        token: str | None = None,
        owner: str = "",
        attempts: int = 4,
        slot_wait: float = 600.0,
    ) -> None:
        """``timeout``: seconds to connect and for a reply; resets may take as long as they wait.

        ``attempts`` and ``slot_wait`` (seconds to wait for a free slot) only count towards a
        service that numbers its requests."""
        self._wire = Wire(base_url, timeout=timeout, token=token)
        self._persona = persona
        self._mode = interaction_mode
        self._timeout = timeout
        self._owner = owner
        self._attempts = attempts
        self._slot_wait = slot_wait
        #: seconds a reset waits on our service; None towards the published one or before asking
        self._reset_wait: float | None = None
        self._numbered = False
        self._served: Reply | None = None
        self._lease: dict[str, Any] | None = None
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def health(self) -> Reply:
        """The service's health document."""
        status, health, _ = self._send("GET", "/healthz", None, self._timeout, self._attempts)
        if status != 200 or not isinstance(health, dict):
            raise ShopServiceError("the service is not healthy", status=status)
        return health

    def require(self, identity: Mapping[str, Any]) -> None:
        """Raise OtherEnvironment unless the service is of this ``World.identity()``, as far as
        told."""
        check_served(self.url, served_identity(self.health()), identity)

    def served(self) -> Reply:
        """The identity of the environment that this client plays in, as the service tells it."""
        return dict(self._learn())

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._wire.url

    def reset(self, task_id: int) -> Reply:
        """Begin an episode. The reply has no private goal: it is never asked for."""
        if self._lease is not None:
            raise ShopServiceError("this client still holds a lease; release it first")
        self._learn()
        request = {
            "action": "reset",
            "idx": task_id,
            "if_persona": self._persona,
            "include_private_goal": False,
            "interaction_mode": self._mode,
        }
        if self._numbered:
            request["idempotency_key"] = secrets.token_hex(16)
            request["owner"] = self._owner
        longest = None if self._reset_wait is None else self._timeout + self._reset_wait
        reply = self._call(request, timeout=longest)
        _check_page(reply)
        if not isinstance(reply.get("task_instruction"), str):
            raise ShopServiceError("the reply to reset has no task_instruction")
        if "env_idx" not in reply or "lease_id" not in reply:
            raise ShopServiceError("the reply to reset has no lease")
        self._lease = {"env_idx": reply["env_idx"], "lease_id": reply["lease_id"]}
        self._sequence = 0
        return reply

    def _learn(self) -> Reply:
        """Find out once whose service this is, and of which environment."""
        if self._served is None:
            health = self.health()
            self._numbered = "lease_ttl_seconds" in health
            if self._numbered:
                self._reset_wait = float(health.get("reset_wait_seconds", 0.0))
            self._served = served_identity(health)
        return self._served

    def step(self, action: str | Action) -> Reply:
        """Carry out an action: a text such as ``search[…]``, or a structured one.

        Our service takes a structured one as it is; the published one gets its text, which cannot
        hold every argument (a line break makes it unreadable)."""
        if isinstance(action, Action) and self._numbered:
            said: Reply = {"call": {"name": action.name, "argument": action.argument}}
        else:
            said = {"response": str(action)}
        reply = self._call({"action": "interact", **said, **self._next()})
        _check_page(reply)
        return reply

    def terminate(self, reason: str) -> Reply:
        """End the episode with zero score."""
        reply = self._call({"action": "terminate", "termination_reason": reason, **self._next()})
        _check_page(reply)
        if reply.get("termination_reason") != reason:
            raise ShopServiceError(
                f"asked to end with {reason!r}, the service says "
                f"{reply.get('termination_reason')!r}"
            )
        return reply

    def renew(self) -> None:
        """Prolong the lease during a long pause; the leases of the published service never end."""
        if self._lease is None:
            raise ShopServiceError("no episode: call reset first")
        if self._numbered:
            self._call({"action": "renew", **self._lease})

    def release(self) -> None:
        """Give the slot back. The lease is forgotten even when the call fails."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            self._call({"action": "release_one", **lease})
        except ShopServiceError as error:
            # Ours: it ended by itself, or an earlier release arrived and its reply was lost.
            if error.code not in ("stale_lease", "lease_expired"):
                raise

    def close(self) -> None:
        """Release and disconnect."""
        try:
            self.release()
        finally:
            self._wire.close()

    def _next(self) -> Reply:
        if self._lease is None:
            raise ShopServiceError("no episode: call reset first")
        self._sequence += 1
        numbered = {"sequence": self._sequence} if self._numbered else {}
        return {**self._lease, **numbered}

    def _call(self, request: Mapping[str, Any], *, timeout: float | None = -1.0) -> Reply:
        """The result of a request, repeated while that is safe. ``timeout`` None waits for ever."""
        timeout = self._timeout if timeout == -1.0 else timeout
        attempts = self._attempts if self._numbered else 1
        give_up = time.monotonic() + self._slot_wait
        while True:
            status, answer, retry_after = self._send("POST", PATH, request, timeout, attempts)
            if status != 429 or not self._numbered or time.monotonic() + retry_after >= give_up:
                break
            time.sleep(retry_after)
        return result_of(status, answer)

    def _send(
        self, method: str, path: str, body: object, timeout: float | None, attempts: int
    ) -> tuple[int, Any, float]:
        """One exchange; a lost one is made again, ``attempts`` times in all."""
        for failures in range(1, attempts):
            try:
                return self._wire.exchange(method, path, body, timeout=timeout)
            except ShopServiceError:
                time.sleep(min(0.1 * 2**failures, 2.0))
        return self._wire.exchange(method, path, body, timeout=timeout)


def _check_page(reply: Mapping[str, Any]) -> None:
    state = reply.get("observation_state")
    if not isinstance(reply.get("observation"), str) or not isinstance(state, dict):
        raise ShopServiceError("the reply has no observation")
    if not isinstance(state.get("observation_version"), str):
        raise ShopServiceError("the observation names no version")
