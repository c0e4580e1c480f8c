"""The cold start on a language model: success analyst, clusterer and global compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analyst.cold_start.clusters import TEXTS as CLUSTER_TEXTS
from trainer.analyst.cold_start.clusters import cluster_errors, evidence
from trainer.analyst.cold_start.draft import TEXTS as CHUNK_TEXTS
from trainer.analyst.cold_start.success import MOST_LESSONS, lesson_errors
from trainer.analyst.cold_start.success import TEXTS as LESSON_TEXTS
from trainer.analyst.endpoint.analyst import system_prompt
from trainer.analyst.endpoint.compaction import compact_trace
from trainer.analyst.endpoint.line import Line
from trainer.analyst.endpoint.prompts import (
    CLUSTERER,
    DRAFTER,
    SUCCESS,
    WORD_WORLD_COMPILER,
)
from trainer.analyst.endpoint.repair import Check, as_json, ask_until_valid
from trainer.analyst.endpoint.tools import function, object_of, one_call
from trainer.analyst.endpoint.wire import Message
from trainer.analyst.maker import AnalystFailed
from trainer.analyst.settings import LimitSettings
from trainer.canonical import fingerprint, safe_name
from trainer.rollout.traces import without_times
from trainer.shop.world import World

Row = dict[str, Any]
_TEXT: Row = {"type": "string"}
_TEXTS: Row = {"type": "array", "items": _TEXT}
_NUMBER: Row = {"type": "number", "minimum": 0, "maximum": 1}


def _list_tool(name: str, description: str, key: str, item: Row, *, rest: str = "") -> Row:
    parts: Row = {key: {"type": "array", "items": item}, **({rest: _TEXTS} if rest else {})}
    return function(name, description, object_of(parts, list(parts)))


SUBMIT_LESSONS = _list_tool(
    "submit_success_cards",
    "提交成功经验卡。",
    "cards",
    object_of(
        {
            **dict.fromkeys(LESSON_TEXTS, _TEXT),
            "related_chunk_ids": _TEXTS,
            "confidence": _NUMBER,
        },
        [*LESSON_TEXTS, "confidence"],
    ),
)
SUBMIT_CLUSTERS = _list_tool(
    "submit_clusters",
    "提交按机制合并的聚类。",
    "clusters",
    object_of(
        {
            **dict.fromkeys(CLUSTER_TEXTS, _TEXT),
            "procedure": _TEXTS,
            "evidence_card_ids": _TEXTS,
        },
        [*CLUSTER_TEXTS, "procedure", "evidence_card_ids"],
    ),
)
SUBMIT_DRAFT = _list_tool(
    "submit_initial_skill",
    "提交初始技能草稿。",
    "chunks",
    object_of(
        {**dict.fromkeys(CHUNK_TEXTS, _TEXT), "procedure": _TEXTS, "evidence_cluster_ids": _TEXTS},
        [*CHUNK_TEXTS, "procedure", "evidence_cluster_ids"],
    ),
    rest="evidence_only_cluster_ids",
)


class EndpointColdStart:
    """All three roles on one server, within one budget."""

    provenance = "endpoint"

    def __init__(
        self,
        world: World,
        line: Line,
        *,
        limits: LimitSettings,
    ) -> None:
        self._world = world
        self._line = line
        self._limits = limits
        self._drafter = system_prompt(DRAFTER, WORD_WORLD_COMPILER, world)

    def identity(self) -> Mapping[str, Any]:
        """Model, sampling, prompts and tools of all roles."""
        return {
            **self._line.settings.identity(),
            "prompt_sha256": fingerprint([SUCCESS, CLUSTERER, self._drafter]),
            "tools_sha256": fingerprint([SUBMIT_LESSONS, SUBMIT_CLUSTERS, SUBMIT_DRAFT]),
        }

    def lessons(self, trace: Mapping[str, Any]) -> tuple[list[Row], Row]:
        """One call; an answer that breaks the contract is not repaired."""
        key = fingerprint([without_times(trace), self.identity()])[:8]
        name = f"success-{safe_name(trace['episode_id'])}.{key}"
        conversation = self._line.conversation(name, self._line.settings.session_max_tokens)
        opening = _opening(SUCCESS, {"trace": compact_trace(trace), "max_cards": MOST_LESSONS})
        call = one_call(conversation.ask(opening, [SUBMIT_LESSONS]), ["submit_success_cards"])
        lessons = (call.arguments or {}).get("cards")
        errors = [str(call.problem)] if call.problem else lesson_errors(lessons)
        if errors or not isinstance(lessons, list):
            raise AnalystFailed("; ".join(errors))
        return lessons, conversation.account.to_record()

    def cluster(self, channel: str, cards: Sequence[Row]) -> list[Row]:
        """The clusters of a batch."""
        ids = [card["card_id"] for card in cards]
        payload = {"channel": channel, "cards": [evidence(channel, card) for card in cards]}
        result = self._ask(
            f"cluster-{channel}",
            _opening(CLUSTERER, payload),
            SUBMIT_CLUSTERS,
            lambda arguments: cluster_errors(arguments.get("clusters"), ids),
        )
        clusters: list[Row] = result["clusters"]
        return clusters

    def draft(self, clusters: Sequence[Row], most: int, check: Check) -> Row:
        """The global compilation."""
        payload = {"max_chunks": most, "clusters": list(clusters)}
        return self._ask("draft", _opening(self._drafter, payload), SUBMIT_DRAFT, check)

    def _ask(self, role: str, opening: list[Message], tool: Row, check: Check) -> Row:
        key = fingerprint([opening, self.identity()])[:16]
        conversation = self._line.conversation(
            f"{role}.{key}", self._line.settings.compile_max_tokens
        )
        attempts = self._limits.compile_attempts
        result, _ = ask_until_valid(conversation, opening, tool, check, attempts)
        return result


def _opening(system: str, payload: Row) -> list[Message]:
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": as_json(payload)},
    ]
