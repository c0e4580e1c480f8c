"""Several workers behave as one service: each owns a share of the slots and passes on what is not
its own.

The kernel spreads connections over the workers; a lease stays with the worker that gave it. A
request for another worker's slot travels over a private socket to its owner. A numbered reset has
one home worker, so that a repeated one finds the first. A single worker has no peers and never
uses sockets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from trainer.shop.service.episodes import Reply
from trainer.shop.service.errors import ERROR_BETWEEN_WORKERS, ServiceError
from trainer.shop.service.metrics import Sample
from trainer.shop.service.requests import read_reset, read_slot
from trainer.shop.service.service import Service, require_admin

_POLL_SECONDS = 0.1
#: health and metrics do not wait longer for a worker that is busy or stopped
_LOOK_SECONDS = 5.0
_REMEMBERED_KEYS = 10_000


def socket_name(worker: int) -> str:
    """File name of a worker's private socket."""
    return f"worker-{worker}.sock"


class Peers:
    """The other workers, reached over ``<folder>/worker-<n>.sock``."""

    def __init__(self, worker: int = 0, workers: int = 1, folder: Path | None = None) -> None:
        self.worker = worker
        self.workers = workers
        self._folder = folder
        self._sessions: dict[int, aiohttp.ClientSession] = {}
        self._spilled: OrderedDict[str, int] = OrderedDict()

    @property
    def others(self) -> list[int]:
        return [worker for worker in range(self.workers) if worker != self.worker]

    def socket(self, worker: int) -> Path:
        """Where ``worker`` listens for its peers."""
        if self._folder is None:
            raise AssertionError("a single worker has no socket")
        return self._folder / socket_name(worker)

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    # --- routing

    async def route(self, service: Service, request: Mapping[str, Any], *, admin: bool) -> Reply:
        """Answer a client's request, here or at the worker that can. Raises ServiceError."""
        if self.workers == 1:
            return await service.handle(request, admin=admin)
        action = request["action"]
        if action == "reset":
            home = self._home(read_reset(request).key)
        elif action == "release_all":
            require_admin(admin)
            for worker in self.others:
                with contextlib.suppress(ServiceError):  # the leases of a dead worker are void
                    await self._ask(worker, request, admin=admin, wait=False)
            home = self.worker
        else:
            home = read_slot(request).slot % self.workers
        if home == self.worker:
            return await self.local(service, request, admin=admin, wait=True)
        return await self._ask(home, request, admin=admin, wait=True)

    def _home(self, key: str) -> int:
        if not key:
            return self.worker
        digest = hashlib.sha256(key.encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:4], "big") % self.workers

    async def local(
        self, service: Service, request: Mapping[str, Any], *, admin: bool, wait: bool
    ) -> Reply:
        """Answer here. A reset that finds no slot asks the others while it waits."""
        if request["action"] != "reset" or self.workers == 1:
            return await service.handle(request, admin=admin)
        if not wait:
            return await service.handle(request, admin=admin, wait=0)
        key = read_reset(request).key
        if key in self._spilled:
            return await self._ask(self._spilled[key], request, admin=admin, wait=False)
        return await self._reset_anywhere(service, request, key, admin=admin)

    async def _reset_anywhere(
        self, service: Service, request: Mapping[str, Any], key: str, *, admin: bool
    ) -> Reply:
        here = asyncio.ensure_future(service.handle(request, admin=admin))
        needed = False
        try:
            await asyncio.sleep(0)
            while not here.done():
                for worker in self.others:
                    try:
                        reply = await self._ask(worker, request, admin=admin, wait=False)
                    except ServiceError as error:
                        if error.code != "no_free_slot":
                            raise
                    else:
                        self._remember(key, worker)
                        return reply
                await asyncio.wait({here}, timeout=_POLL_SECONDS)
            needed = True
            return here.result()
        finally:
            if not needed and not here.cancel() and here.exception() is None:
                unused = here.result()  # both found a slot in the same moment
                lease = {name: unused[name] for name in ("env_idx", "lease_id")}
                await service.handle({"action": "release_one", **lease})

    def _remember(self, key: str, worker: int) -> None:
        if key:
            self._spilled[key] = worker
            while len(self._spilled) > _REMEMBERED_KEYS:
                self._spilled.popitem(last=False)

    # --- the wire between workers

    def _session(self, worker: int) -> aiohttp.ClientSession:
        if worker not in self._sessions:
            connector = aiohttp.UnixConnector(str(self.socket(worker)), limit=0)
            # A reset may wait for long; a worker that died closes its socket.
            timeout = aiohttp.ClientTimeout(total=None)
            self._sessions[worker] = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._sessions[worker]

    async def _ask(
        self, worker: int, request: Mapping[str, Any], *, admin: bool, wait: bool
    ) -> Reply:
        try:
            message = json.dumps({"request": request, "admin": admin, "wait": wait}).encode()
        except RecursionError as error:
            raise ServiceError("bad_request", "the request is nested too deeply") from error
        url = "http://worker/handle"
        try:
            async with self._session(worker).post(url, data=message) as answer:
                reply: Reply = await answer.json()
        except aiohttp.ClientError as error:
            if request["action"] == "reset":
                raise ServiceError(
                    "no_free_slot", f"worker {worker} is starting again", retry_after=1
                ) from error
            raise ServiceError(
                "lease_expired", f"worker {worker} was started again; its leases are void"
            ) from error
        if answer.status == ERROR_BETWEEN_WORKERS:
            raise ServiceError(
                reply["code"], reply["message"], retry_after=reply.get("retry_after")
            )
        return reply

    # --- health and metrics of all workers

    async def _look(self, worker: int, what: str) -> Any:
        timeout = aiohttp.ClientTimeout(total=_LOOK_SECONDS)
        async with self._session(worker).get(f"http://worker/{what}", timeout=timeout) as answer:
            return await answer.json()

    async def health(self, service: Service) -> dict[str, Any]:
        """One health document for the whole service."""
        total = service.health()
        total["workers"] = self.workers
        for worker in self.others:
            try:
                other = await self._look(worker, "health")
            except (aiohttp.ClientError, TimeoutError):
                total["ready"] = False
                continue
            for name in ("environment_slots", "free_slots", "queue_depth"):
                total[name] += other[name]
        return total

    async def samples(self) -> list[Sample]:
        """The samples of the other workers, told apart by their labels."""
        samples: list[Sample] = []
        for worker in self.others:
            try:
                samples += map(tuple, await self._look(worker, "metrics"))
            except (aiohttp.ClientError, TimeoutError):
                continue
        return samples
