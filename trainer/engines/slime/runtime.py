"""The state of one rollout worker: everything the hooks remember between two calls, in one object.

slime calls plain functions, so there is one runtime per process; ``reset`` gives tests and a new
job a clean one. Nothing here imports slime, ray or torch until an episode is played.
Specification: training.md §4.1, §9.13-9.15.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainer.engines.slime.admission import BlockingCalls, EpisodeAdmission
from trainer.engines.slime.groups import CurriculumFiles, GroupTable
from trainer.engines.slime.history import Tokenizer
from trainer.engines.slime.play import Stage
from trainer.engines.slime.population import FailureWatch
from trainer.engines.slime.publication import Publisher
from trainer.engines.slime.recorders import (
    OwnRecorder,
    Recorder,
    SlimeRecorder,
    make_adapter,
    uses_slime,
)
from trainer.engines.slime.settings import HookSettings
from trainer.engines.slime.sglang_client import SamplingRequest, SglangClient
from trainer.engines.slime.shops import Shop, shop_of
from trainer.rollout.live import LiveFile, step_file
from trainer.rollout.prompts import ACTION_PROTOCOL, WORD_ACTION_PROTOCOL

RUNTIME_VERSION = "shopsimrl-slime-agent-runtime-v2"
DEFAULT_TOOL_PARSER = "qwen3_coder"
DEFAULT_REASONING_PARSER = "qwen3"
DEFAULT_RESPONSE_TOKENS = 2048

#: names of the tool and the reasoning parser
Parsers = tuple[str, str]


class Runtime:
    """What a worker holds across episodes and steps."""

    def __init__(self) -> None:
        self.admission = EpisodeAdmission()
        self.calls = BlockingCalls()
        self.groups = GroupTable(CurriculumFiles())
        self.publisher = Publisher()
        self.step: int | None = None
        self._live: LiveFile | None = None
        self._seen: set[int] | None = None
        self._watch: FailureWatch | None = None
        self._shops: dict[HookSettings, Shop] = {}
        self._clients: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[str, SglangClient]
        ] = weakref.WeakKeyDictionary()
        self._adapters: dict[tuple[int, str, str, str], Any] = {}

    def live(self, folder: Path, step: int) -> LiveFile:
        """Where the episodes of a step are told of while they are played; the step's publication
        removes the file.
        """
        path = step_file(folder, step)
        if self._live is None or self._live.path != path:
            self._live = LiveFile(path)
        return self._live

    def note_seen(self, group_indices: set[int]) -> None:
        """Remember which groups reached slime's filter in the present step."""
        self._seen = group_indices

    def take_seen(self) -> set[int] | None:
        """What was noted, once; None when slime did not say."""
        seen, self._seen = self._seen, None
        return seen

    def watch(self, settings: HookSettings) -> FailureWatch:
        """The failure counter, anew when its limits change."""
        wanted = (
            settings.max_consecutive_failed_groups,
            settings.failure_window,
            settings.max_failed_share,
        )
        if self._watch is None or self._watch.settings != wanted:
            limit, window, share = wanted
            self._watch = FailureWatch(limit=limit, window=window, max_share=share)
        return self._watch

    def stage(self, args: Any, settings: HookSettings, sampling_params: Mapping[str, Any]) -> Stage:
        """What the episodes of a ``generate`` call share."""
        from slime.rollout.sglang_rollout import GenerateState

        state = GenerateState(args)
        shop = self._shop(settings)
        url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}"
        names = parsers(args, settings)
        sampling = sampling_request(args, sampling_params)
        tokenizer: Tokenizer = state.tokenizer
        return Stage(
            settings=settings,
            shop=shop,
            tokenizer=tokenizer,
            client=self._client(url),
            sampling=sampling,
            provenance=provenance(args, settings, shop),
            admission=self.admission,
            calls=self.calls,
            aborted=lambda: bool(state.aborted),
            recorder=self._recorders(
                settings, tokenizer, url, limit=sampling.max_context_tokens, names=names
            ),
            tool_parser=names[0],
            reasoning_parser=names[1],
        )

    def _shop(self, settings: HookSettings) -> Shop:
        """One shop for all episodes: it remembers which environment a service was of."""
        if settings not in self._shops:
            self._shops[settings] = shop_of(settings)
        return self._shops[settings]

    def _client(self, url: str) -> SglangClient:
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if url not in clients:
            clients[url] = SglangClient(url)
        return clients[url]

    def _recorders(
        self, settings: HookSettings, tokenizer: Tokenizer, url: str, *, limit: int, names: Parsers
    ) -> Callable[[str], Recorder]:
        if not uses_slime(settings):
            contiguous = settings.sample_layout == "episode"
            return lambda session_id: OwnRecorder(
                tokenizer, contiguous=contiguous, max_tokens=limit
            )
        key = (id(tokenizer), url, *names)
        if key not in self._adapters:
            tool_parser, reasoning = names
            self._adapters[key] = make_adapter(
                tokenizer, url, tool_parser=tool_parser, reasoning=reasoning
            )
        adapter = self._adapters[key]
        return lambda session_id: SlimeRecorder(adapter, session_id, max_tokens=limit)


def parsers(args: Any, settings: HookSettings) -> Parsers:
    """Names of SGLang's tool and reasoning parsers."""
    tool = settings.tool_parser or getattr(args, "sglang_tool_call_parser", None)
    reasoning = settings.reasoning_parser or getattr(args, "sglang_reasoning_parser", None)
    return tool or DEFAULT_TOOL_PARSER, reasoning or DEFAULT_REASONING_PARSER


def sampling_request(args: Any, sampling_params: Mapping[str, Any]) -> SamplingRequest:
    """slime's sampling parameters with the caps of turn and context."""
    per_turn = (
        sampling_params.get("max_new_tokens")
        or getattr(args, "rollout_max_response_len", None)
        or DEFAULT_RESPONSE_TOKENS
    )
    context = getattr(args, "rollout_max_context_len", None) or (
        getattr(args, "context_parallel_size", 1) * (getattr(args, "max_tokens_per_gpu", 0) or 0)
    )
    return SamplingRequest(dict(sampling_params), int(per_turn), int(context))


def provenance(args: Any, settings: HookSettings, shop: Shop) -> dict[str, Any]:
    """The trace sections that all episodes of a worker share."""
    words = getattr(shop.world, "language", None) is not None
    return {
        "model": {"engine": "slime", "checkpoint": str(getattr(args, "hf_checkpoint", ""))},
        "environment": shop.identity(),
        "prompt": shop.builder.identity(),
        "runtime": {
            "adapter": RUNTIME_VERSION,
            "max_steps": settings.max_steps,
            "action_protocol": WORD_ACTION_PROTOCOL if words else ACTION_PROTOCOL,
            "sample_layout": settings.sample_layout,
            "echo_reasoning": settings.echo_reasoning,
        },
    }


_runtime = Runtime()


def runtime() -> Runtime:
    """The runtime of this process."""
    return _runtime


def reset() -> Runtime:
    """Forget everything: a new job or a new test begins."""
    global _runtime  # noqa: PLW0603 - slime calls functions, so the process holds the state
    _runtime.calls.close()
    _runtime.publisher.close()
    _runtime = Runtime()
    return _runtime
