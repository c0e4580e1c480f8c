"""The compiler on a language model: asked again, every broken rule named, until it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analyst.compiler.compile import Compiled
from trainer.analyst.compiler.contract import Contract
from trainer.analyst.compiler.history import outcome_of
from trainer.analyst.endpoint.analyst import system_prompt
from trainer.analyst.endpoint.line import Line
from trainer.analyst.endpoint.prompts import (
    ADD_AND_REWRITE,
    COMPILER,
    REPAIR,
    RESTRUCTURE,
    WORD_WORLD_COMPILER,
)
from trainer.analyst.endpoint.repair import as_json, ask_until_valid
from trainer.analyst.endpoint.tools import submit_candidates_tool
from trainer.analyst.endpoint.wire import Message
from trainer.analyst.settings import LimitSettings
from trainer.canonical import fingerprint
from trainer.shop.world import World
from trainer.skills.types import Chunk

Card = Mapping[str, Any]
HISTORY_FIELDS = ("candidate_id", "operation", "target_chunk_id", "failure_mechanism", "content")


class EndpointCompiler:
    """Compiles the cards of one round."""

    def __init__(
        self,
        world: World,
        chunks: Sequence[Chunk],
        line: Line,
        *,
        limits: LimitSettings,
        restructure: bool = False,
    ) -> None:
        self._chunks = chunks
        self._line = line
        self._limits = limits
        operations = RESTRUCTURE if restructure else ADD_AND_REWRITE
        compiler = COMPILER.replace("{operations}", operations)
        self._system = system_prompt(compiler, WORD_WORLD_COMPILER, world)
        self._tool = submit_candidates_tool(restructure=restructure)

    def identity(self) -> Mapping[str, Any]:
        """Model and sampling, prompts and tools, and how often it may be asked."""
        return {
            **self._line.settings.identity(),
            "prompt_sha256": fingerprint([self._system, REPAIR]),
            "tools_sha256": fingerprint(self._tool),
            "attempts": self._limits.compile_attempts,
        }

    def compile(self, cards: Sequence[Card], contract: Contract) -> Compiled:
        """Raises CompilationFailed after the last attempt, BudgetSpent and ServerRefuses."""
        payload = self._payload(cards, contract)
        opening: list[Message] = [
            {
                "role": "system",
                "content": self._system.replace("{max_candidates}", str(contract.max_candidates)),
            },
            {"role": "user", "content": as_json(payload)},
        ]
        key = fingerprint([opening, self.identity()])[:16]
        conversation = self._line.conversation(
            f"compile.{key}", self._line.settings.compile_max_tokens, for_session=False
        )
        result, attempts = ask_until_valid(
            conversation,
            opening,
            self._tool,
            contract.errors,
            self._limits.compile_attempts,
        )
        return Compiled(
            items=result["candidates"],
            evidence_only=sorted(result["evidence_only_card_ids"]),
            attempts=attempts,
            accounting=conversation.account.to_record(),
        )

    def _payload(self, cards: Sequence[Card], contract: Contract) -> dict[str, Any]:
        return {
            "max_candidates": contract.max_candidates,
            "active_chunks": [
                {"chunk_id": chunk.skill_id, "content": chunk.content} for chunk in self._chunks
            ],
            "failure_cards": [
                {name: card[name] for name in ("card_id", "status", "deployable_abstraction")}
                for card in sorted(cards, key=lambda card: str(card["card_id"]))
            ],
            "proposal_history": [
                {
                    **{name: row[name] for name in HISTORY_FIELDS},
                    "proposal_checkpoint": row["proposal_checkpoint"],
                    "validation_result": row.get("validation_result"),
                    "estimated_effect": row.get("estimated_effect"),
                    "outcome": outcome_of(row),
                }
                for row in contract.history.rows
            ],
        }
